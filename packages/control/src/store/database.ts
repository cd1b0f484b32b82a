import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { Kysely, SqliteDialect } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "./migrations.ts";
import { openSqlite } from "./node-sqlite.ts";
import { postgresDialect } from "./postgres.ts";

/** The tables. Times are milliseconds since the epoch; secrets are SHA-256 in hexadecimal. */
export interface Tables {
  setting: { name: string; value: string };
  project: { id: string; name: string; created_at_ms: number };
  api_key: {
    id: string;
    project_id: string;
    name: string;
    role: "admin" | "member";
    secret_sha256: string;
    created_at_ms: number;
    revoked_at_ms: number | null;
  };
  join_token: { secret_sha256: string; expires_at_ms: number };
  node: { id: string; hostname: string; url: string; joined_at_ms: number };
  control_instance: { url: string; seen_at_ms: number };
}

export type Database = Kysely<Tables>;

/** Opens the store, PostgreSQL at `postgresUrl` or else SQLite below `dataDir`, and brings its tables up to date. The caller closes it. */
export async function openDatabase(at: {
  readonly dataDir: string;
  readonly postgresUrl?: string;
}): Promise<Database> {
  const dialect =
    at.postgresUrl === undefined ? embeddedDialect(at.dataDir) : postgresDialect(at.postgresUrl);
  const database = new Kysely<Tables>({ dialect });
  const migrator = new Migrator({ db: database, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) {
    await database.destroy();
    throw new Error("Cannot bring the tables of the store up to date", { cause: error });
  }
  return database;
}

function embeddedDialect(dataDir: string): SqliteDialect {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, "control.sqlite");
  // Made here, so that it never exists with wider rights.
  closeSync(openSync(path, "a", 0o600));
  return new SqliteDialect({ database: async () => openSqlite(path) });
}
