import type { ApiKey } from "@dsec/contracts";
import type { Selectable } from "kysely";
import type { Database, Tables } from "./database.ts";

/** A key as stored: the secret only as SHA-256, 64 hexadecimal digits. */
export interface StoredKey extends ApiKey {
  readonly secretSha256: string;
}

export async function insertKey(database: Database, key: StoredKey): Promise<void> {
  await database
    .insertInto("api_key")
    .values({
      id: key.id,
      project_id: key.project,
      name: key.name,
      role: key.role,
      secret_sha256: key.secretSha256,
      created_at_ms: key.createdAtMs,
      revoked_at_ms: key.revokedAtMs,
    })
    .execute();
}

export async function findKey(database: Database, id: string): Promise<StoredKey | undefined> {
  const row = await database.selectFrom("api_key").selectAll().where("id", "=", id).executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

export async function listKeys(database: Database): Promise<StoredKey[]> {
  const rows = await database
    .selectFrom("api_key")
    .selectAll()
    .orderBy("created_at_ms")
    .orderBy("id")
    .execute();
  return rows.map(fromRow);
}

export async function countKeys(database: Database): Promise<number> {
  const row = await database
    .selectFrom("api_key")
    .select((select) => select.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Marks a key as revoked, once; says whether there is such a key. */
export async function revokeKey(database: Database, id: string, atMs: number): Promise<boolean> {
  await database
    .updateTable("api_key")
    .set({ revoked_at_ms: atMs })
    .where("id", "=", id)
    .where("revoked_at_ms", "is", null)
    .execute();
  return (await findKey(database, id)) !== undefined;
}

function fromRow(row: Selectable<Tables["api_key"]>): StoredKey {
  return {
    id: row.id,
    project: row.project_id,
    name: row.name,
    role: row.role,
    secretSha256: row.secret_sha256,
    createdAtMs: row.created_at_ms,
    revokedAtMs: row.revoked_at_ms,
  };
}
