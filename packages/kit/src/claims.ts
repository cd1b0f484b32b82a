import { type KeyObject, sign, verify } from "node:crypto";
import { Claim, claimLifetimeMs, claimLifetimeMsMax, PlatformError } from "@dsec/contracts";
import { Value } from "typebox/value";

const cachedClaimsMax = 4_096;
const headerLengthMax = 4_096;

/** Makes the header of a claim (contracts/claims.ts). One signature serves half of its lifetime. */
export class ClaimSigner {
  readonly #key: KeyObject;
  readonly #cache = new Map<string, { readonly header: string; readonly renewAtMs: number }>();

  /** `key`: Ed25519 private key. */
  constructor(key: KeyObject) {
    this.#key = key;
  }

  header(subject: Omit<Claim, "expiresAtMs">, nowMs: number = Date.now()): string {
    const name = `${subject.project} ${subject.principal} ${subject.admin}`;
    const cached = this.#cache.get(name);
    if (cached !== undefined && nowMs < cached.renewAtMs) return cached.header;
    const claim: Claim = { ...subject, expiresAtMs: nowMs + claimLifetimeMs };
    const body = Buffer.from(JSON.stringify(claim)).toString("base64url");
    const signature = sign(null, Buffer.from(body), this.#key).toString("base64url");
    const header = `${body}.${signature}`;
    remember(this.#cache, name, { header, renewAtMs: nowMs + claimLifetimeMs / 2 });
    return header;
  }
}

/** Checks the headers that ClaimSigner makes. A header is verified once and remembered until it expires. */
export class ClaimVerifier {
  readonly #key: KeyObject;
  readonly #cache = new Map<string, Claim>();

  /** `key`: Ed25519 public key. */
  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** The claim, or `unauthenticated`. */
  verify(header: string | undefined, nowMs: number = Date.now()): Claim {
    if (header === undefined || header.length > headerLengthMax) throw refused("no claim");
    const claim = this.#cache.get(header) ?? this.#check(header);
    if (claim.expiresAtMs <= nowMs) {
      this.#cache.delete(header);
      throw refused("the claim has expired");
    }
    if (claim.expiresAtMs > nowMs + claimLifetimeMsMax) throw refused("the claim lives too long");
    remember(this.#cache, header, claim);
    return claim;
  }

  #check(header: string): Claim {
    const [body, signature, ...rest] = header.split(".");
    if (body === undefined || signature === undefined || rest.length > 0)
      throw refused("the claim is malformed");
    if (!verify(null, Buffer.from(body), this.#key, Buffer.from(signature, "base64url"))) {
      throw refused("the signature of the claim is wrong");
    }
    const value: unknown = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
    if (!Value.Check(Claim, value)) throw refused("the claim is malformed");
    return value;
  }
}

function remember<Entry>(cache: Map<string, Entry>, name: string, entry: Entry): void {
  cache.delete(name);
  cache.set(name, entry);
  if (cache.size <= cachedClaimsMax) return;
  const [oldest] = cache.keys();
  if (oldest !== undefined) cache.delete(oldest);
}

function refused(reason: string): PlatformError {
  return new PlatformError("unauthenticated", `Cannot accept the call: ${reason}`);
}
