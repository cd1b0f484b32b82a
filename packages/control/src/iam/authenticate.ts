import { PlatformError, type Route } from "@dsec/contracts";
import type { Database } from "../store/database.ts";
import { findKey, type StoredKey } from "../store/keys.ts";
import { decide, type Principal } from "./decide.ts";
import { isSecret, parseKeyText } from "./secrets.ts";

const cachedKeysMax = 10_000;

/** Turns keys into principals. A key read from the store serves for `cacheMs`: so long may a revoked one still be accepted. */
export class Authenticator {
  readonly #database: Database;
  readonly #cacheMs: number;
  readonly #cache = new Map<string, { readonly key: StoredKey; readonly readAtMs: number }>();

  constructor(database: Database, cacheMs: number) {
    this.#database = database;
    this.#cacheMs = cacheMs;
  }

  /** The caller of a request; `unauthenticated` or `forbidden`. */
  async principal(authorization: string | undefined, auth: Route["auth"]): Promise<Principal> {
    const text =
      authorization?.startsWith("Bearer ") === true ? authorization.slice("Bearer ".length) : undefined;
    if (text === undefined) throw refused("give an API key as `authorization: Bearer dsec_…`");
    const principal = await this.#principalOf(text);
    if (!decide(principal, auth))
      throw new PlatformError("forbidden", "Cannot do this: the key is not an admin's");
    return principal;
  }

  async #principalOf(text: string): Promise<Principal> {
    const parts = parseKeyText(text);
    const key = parts === undefined ? undefined : await this.#key(parts.id);
    if (
      parts === undefined ||
      key === undefined ||
      key.revokedAtMs !== null ||
      !isSecret(parts.secret, key.secretSha256)
    ) {
      throw refused("the API key is unknown or revoked");
    }
    return { keyId: key.id, project: key.project, role: key.role };
  }

  async #key(id: string): Promise<StoredKey | undefined> {
    const cached = this.#cache.get(id);
    if (cached !== undefined && Date.now() - cached.readAtMs < this.#cacheMs) return cached.key;
    const key = await findKey(this.#database, id);
    this.#cache.delete(id);
    if (key === undefined) return undefined;
    this.#cache.set(id, { key, readAtMs: Date.now() });
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > cachedKeysMax && oldest !== undefined) this.#cache.delete(oldest);
    return key;
  }
}

function refused(reason: string): PlatformError {
  return new PlatformError("unauthenticated", `Cannot accept the call: ${reason}`);
}
