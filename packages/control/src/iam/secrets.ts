import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type KeyId, keyIdPattern } from "@dsec/contracts";

const keyPattern = new RegExp(`^dsec_(${keyIdPattern.slice(1, -1)})_([A-Za-z0-9_-]{43})$`);

/** 256 random bits as 43 base64url characters. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** What the caller keeps: `dsec_<key id>_<secret>`. */
export function keyText(id: KeyId, secret: string): string {
  return `dsec_${id}_${secret}`;
}

/** The parts of a key, or undefined when it is not of the form. */
export function parseKeyText(text: string): { readonly id: KeyId; readonly secret: string } | undefined {
  const match = keyPattern.exec(text);
  const [, id, secret] = match ?? [];
  return id === undefined || secret === undefined ? undefined : { id: id as KeyId, secret };
}

/** SHA-256, 64 hexadecimal digits. Secrets have 256 bits of randomness, so that no slow hash is needed. */
export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Compares in constant time. */
export function isSecret(secret: string, sha256: string): boolean {
  return timingSafeEqual(Buffer.from(hashSecret(secret), "hex"), Buffer.from(sha256, "hex"));
}
