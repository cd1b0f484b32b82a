import type { Database } from "./database.ts";

/** A node that joined. `url` is where its edge serves. */
export interface StoredNode {
  readonly id: string;
  readonly hostname: string;
  readonly url: string;
  readonly joinedAtMs: number;
}

/** Inserts unless the id is taken; says whether it did. */
export async function insertNode(database: Database, node: StoredNode): Promise<boolean> {
  const result = await database
    .insertInto("node")
    .values({ id: node.id, hostname: node.hostname, url: node.url, joined_at_ms: node.joinedAtMs })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export async function updateNode(
  database: Database,
  node: Pick<StoredNode, "id" | "hostname" | "url">,
): Promise<void> {
  await database
    .updateTable("node")
    .set({ hostname: node.hostname, url: node.url })
    .where("id", "=", node.id)
    .execute();
}

export async function listNodes(database: Database): Promise<StoredNode[]> {
  const rows = await database.selectFrom("node").selectAll().orderBy("id").execute();
  return rows.map((row) => ({
    id: row.id,
    hostname: row.hostname,
    url: row.url,
    joinedAtMs: row.joined_at_ms,
  }));
}

export async function insertJoinToken(
  database: Database,
  secretSha256: string,
  expiresAtMs: number,
): Promise<void> {
  await database
    .insertInto("join_token")
    .values({ secret_sha256: secretSha256, expires_at_ms: expiresAtMs })
    .execute();
}

export async function isJoinToken(database: Database, secretSha256: string, nowMs: number): Promise<boolean> {
  const row = await database
    .selectFrom("join_token")
    .select("expires_at_ms")
    .where("secret_sha256", "=", secretSha256)
    .executeTakeFirst();
  return row !== undefined && row.expires_at_ms > nowMs;
}

/** Says that the instance at `url` lives; forgets instances that were silent for `silentMs`; answers those that live. */
export async function announceInstance(
  database: Database,
  url: string,
  nowMs: number,
  silentMs: number,
): Promise<string[]> {
  await database
    .insertInto("control_instance")
    .values({ url, seen_at_ms: nowMs })
    .onConflict((conflict) => conflict.column("url").doUpdateSet({ seen_at_ms: nowMs }))
    .execute();
  await database
    .deleteFrom("control_instance")
    .where("seen_at_ms", "<", nowMs - silentMs)
    .execute();
  const rows = await database.selectFrom("control_instance").select("url").orderBy("url").execute();
  return rows.map((row) => row.url);
}
