import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { createAuthority, createRequest, type KeyPair, signRequest } from "@dsec/kit";
import type { Database } from "../store/database.ts";
import { settingOr } from "../store/settings.ts";

/** What makes this platform itself: made once, kept in the store, the same for every instance. */
export interface PlatformSecrets {
  readonly authority: KeyPair;
  /** Control's certificate towards edges: common name `control`. */
  readonly client: KeyPair;
  /** Ed25519 private key that signs claims, PKCS 8 PEM. */
  readonly claimKey: string;
}

export async function loadSecrets(database: Database): Promise<PlatformSecrets> {
  const authority = JSON.parse(
    await settingOr(database, "authority", async () => JSON.stringify(await createAuthority())),
  ) as KeyPair;
  const client = JSON.parse(
    await settingOr(database, "client", async () =>
      JSON.stringify(await newMember(authority, "control", [])),
    ),
  ) as KeyPair;
  const claimKey = await settingOr(database, "claim-key", async () =>
    generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  );
  return { authority, client, claimKey };
}

/** A new key with a certificate of the authority. */
export async function newMember(
  authority: KeyPair,
  commonName: string,
  hosts: readonly string[],
): Promise<KeyPair> {
  const { privateKey, request } = await createRequest(commonName);
  return { privateKey, certificate: await signRequest(authority, request, { commonName, hosts }) };
}

/** The key with which edges check claims, SPKI PEM. */
export function publicClaimKey(secrets: PlatformSecrets): string {
  return createPublicKey(secrets.claimKey).export({ type: "spki", format: "pem" }).toString();
}
