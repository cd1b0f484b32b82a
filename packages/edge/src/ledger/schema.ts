import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** Each entry brings the ledger from one version to the next; entries are never changed, only added. */
const migrations = [
  `CREATE TABLE sandboxes (
     id TEXT PRIMARY KEY, project TEXT NOT NULL, state TEXT NOT NULL, spec TEXT NOT NULL,
     pid INTEGER, start_time INTEGER, id_base INTEGER, idle_timeout_ms INTEGER NOT NULL,
     created_at_ms INTEGER NOT NULL, lifetime_expires_at_ms INTEGER, ended_at_ms INTEGER, end TEXT, message TEXT
   ) STRICT;
   CREATE INDEX sandboxes_by_project ON sandboxes (project, id);
   CREATE INDEX sandboxes_by_end ON sandboxes (ended_at_ms);
   CREATE TABLE commands (
     sequence INTEGER PRIMARY KEY, sandbox TEXT NOT NULL, action_id TEXT NOT NULL, command_id TEXT,
     request_digest TEXT NOT NULL, detached INTEGER NOT NULL, started_at_ms INTEGER NOT NULL, outcome TEXT,
     UNIQUE (sandbox, action_id)
   ) STRICT;
   CREATE INDEX commands_by_id ON commands (sandbox, command_id) WHERE command_id IS NOT NULL;
   CREATE TABLE idempotency (
     project TEXT NOT NULL, key TEXT NOT NULL, sandbox TEXT NOT NULL, request_digest TEXT NOT NULL,
     created_at_ms INTEGER NOT NULL, PRIMARY KEY (project, key)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX idempotency_by_sandbox ON idempotency (sandbox);
   CREATE INDEX idempotency_by_time ON idempotency (created_at_ms);
   CREATE TABLE images (key TEXT PRIMARY KEY, facts TEXT NOT NULL) STRICT;`,
];

/** Checkpoint once the log has this many pages of 4 KiB. */
const checkpointPages = 16_000;

/**
 * Opens the ledger, 0600. A crash of the edge loses nothing that was committed; a crash of the host may lose the last moments,
 * but then the sandboxes are gone too (synchronous=NORMAL). Exclusive: no lock is taken and given back around each transaction, and
 * a second edge cannot open it.
 */
export function openLedgerDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  if (path !== ":memory:") chmodSync(path, 0o600);
  database.exec(
    `PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${checkpointPages}`,
  );
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version > migrations.length) {
    database.close();
    throw new Error(`the ledger "${path}" is of a newer release (version ${version})`);
  }
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue;
    database.exec(`BEGIN; ${migration}; PRAGMA user_version = ${index + 1}; COMMIT`);
  }
  return database;
}
