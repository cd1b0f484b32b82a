import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseJson } from "@dsec/kit";
import { type Static, Type } from "typebox";

/** What an edge keeps of its membership, in a file of mode 0600: with it the node is itself again after a restart. */
export const Membership = Type.Object(
  {
    nodeId: Type.String(),
    /** PEM texts. */
    privateKey: Type.String(),
    certificate: Type.String(),
    authority: Type.String(),
    claimKey: Type.String(),
    /** Cluster URLs of the control instances known last. */
    controls: Type.Array(Type.String()),
  },
  { additionalProperties: false },
);
export type Membership = Static<typeof Membership>;

/** The membership in `path`, or undefined when this edge never joined. */
export function readMembership(path: string): Membership | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return parseJson(Membership, text, `membership file "${path}"`);
}

/** Replaces the file as a whole. */
export function writeMembership(path: string, membership: Membership): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, JSON.stringify(membership), { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}
