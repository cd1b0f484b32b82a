/**
 * Identifiers. Fixed fields without separators, lower-case base32 (RFC 4648 alphabet `a-z2-7`), so that an id is
 * safe in host names, paths and URLs. A sandbox id is `sb` + 4 characters of its node + 20 random characters (100 bits).
 */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type NodeId = Branded<"node">;
export type SandboxId = Branded<"sandbox">;
export type ProjectId = Branded<"project">;
export type KeyId = Branded<"key">;
export type LayerId = Branded<"layer">;
/** `c` + 12 hexadecimal digits, made by chronus; unique within its sandbox. */
export type CommandId = Branded<"command">;

export const nodeIdPattern = "^[a-z2-7]{4}$";
export const sandboxIdPattern = "^sb[a-z2-7]{24}$";
export const projectIdPattern = "^pr[a-z2-7]{20}$";
export const keyIdPattern = "^ky[a-z2-7]{20}$";
export const layerIdPattern = "^ly[a-z2-7]{32}$";
export const commandIdPattern = "^c[0-9a-f]{12}$";

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/** Base32 text of `length` characters, 5 bits of a byte each. `bytes` must hold at least `length` bytes. */
function base32(bytes: Uint8Array, length: number): string {
  let text = "";
  for (const byte of bytes.subarray(0, length)) text += alphabet[byte & 31];
  return text;
}

/** `length` random base32 characters from the platform's cryptographic source. */
export function randomBase32(length: number): string {
  return base32(globalThis.crypto.getRandomValues(new Uint8Array(length)), length);
}

export function newSandboxId(node: NodeId): SandboxId {
  return `sb${node}${randomBase32(20)}` as SandboxId;
}

export function newProjectId(): ProjectId {
  return `pr${randomBase32(20)}` as ProjectId;
}

export function newKeyId(): KeyId {
  return `ky${randomBase32(20)}` as KeyId;
}

export function newNodeId(): NodeId {
  return randomBase32(4) as NodeId;
}

/** The layer id of a sha256 digest (32 bytes): 5 bits of each byte, 160 bits in all. */
export function layerIdOf(sha256: Uint8Array): LayerId {
  return `ly${base32(sha256, 32)}` as LayerId;
}

/** The node that owns a sandbox: routing needs no look-up. */
export function nodeOf(id: SandboxId): NodeId {
  return id.slice(2, 6) as NodeId;
}

export function isSandboxId(text: string): text is SandboxId {
  return new RegExp(sandboxIdPattern).test(text);
}

export function isNodeId(text: string): text is NodeId {
  return new RegExp(nodeIdPattern).test(text);
}
