import type { DatabaseSync, StatementSync } from "node:sqlite";
import { limits, type SandboxId } from "@dsec/contracts";
import { CommandLog } from "./command-log.ts";
import {
  type IdempotencyEntry,
  type RecordState,
  type Row,
  type SandboxRecord,
  sandboxOfRow,
} from "./records.ts";
import { openLedgerDatabase } from "./schema.ts";
import { WriteQueue } from "./write-queue.ts";

const endedKeptMs = 24 * 60 * 60 * 1000;
const endedKeptMax = 10_000;
const pruneStep = 2_000;

/** What may change after creation. */
export type SandboxChange = Partial<
  Pick<
    SandboxRecord,
    | "state"
    | "pid"
    | "startTime"
    | "idBase"
    | "idleTimeoutMs"
    | "lifetimeExpiresAtMs"
    | "endedAtMs"
    | "end"
    | "message"
  >
>;

export interface SandboxFilter {
  /** Undefined: all projects. */
  readonly project: string | undefined;
  readonly state: RecordState | undefined;
  readonly job: string | undefined;
  /** All must match. */
  readonly labels: readonly (readonly [key: string, value: string])[];
  /** Only ids beyond this one; lists are in order of id. */
  readonly after: string | undefined;
  readonly limit: number;
}

const columns: Readonly<Record<keyof SandboxChange, string>> = {
  state: "state",
  pid: "pid",
  startTime: "start_time",
  idBase: "id_base",
  idleTimeoutMs: "idle_timeout_ms",
  lifetimeExpiresAtMs: "lifetime_expires_at_ms",
  endedAtMs: "ended_at_ms",
  end: "end",
  message: "message",
};

/**
 * What this node promised to keep, in SQLite. Reads are immediate and see what was committed; a write counts once its promise has
 * resolved, and is awaited before it is acted on or acknowledged.
 */
export class Ledger implements Disposable {
  readonly commands: CommandLog;
  readonly #database: DatabaseSync;
  readonly #writes: WriteQueue;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#database = openLedgerDatabase(path);
    this.#writes = new WriteQueue(this.#database);
    this.commands = new CommandLog((sql) => this.#prepare(sql), this.#writes);
  }

  /** The sandbox, and the key it was made under, in one transaction. */
  async addSandbox(
    record: SandboxRecord,
    idempotency: { readonly key: string; readonly requestDigest: string } | undefined,
  ): Promise<void> {
    await this.#writes.write(() => {
      this.#prepare("INSERT INTO sandboxes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
        record.id,
        record.project,
        record.state,
        JSON.stringify(record.spec),
        record.pid,
        record.startTime,
        record.idBase,
        record.idleTimeoutMs,
        record.createdAtMs,
        record.lifetimeExpiresAtMs,
        record.endedAtMs,
        record.end === null ? null : JSON.stringify(record.end),
        record.message,
      );
      if (idempotency === undefined) return;
      this.#prepare("INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?)").run(
        record.project,
        idempotency.key,
        record.id,
        idempotency.requestDigest,
        record.createdAtMs,
      );
    });
  }

  async updateSandbox(id: SandboxId, change: SandboxChange): Promise<void> {
    const names = Object.keys(change) as (keyof SandboxChange)[];
    const sql = `UPDATE sandboxes SET ${names.map((name) => `${columns[name]} = ?`).join(", ")} WHERE id = ?`;
    const values = names.map((name) => {
      const value = change[name];
      return typeof value === "object" && value !== null ? JSON.stringify(value) : (value ?? null);
    });
    await this.#writes.write(() => this.#prepare(sql).run(...values, id));
  }

  sandbox(id: SandboxId): SandboxRecord | undefined {
    const row = this.#prepare("SELECT * FROM sandboxes WHERE id = ?").get(id);
    return row === undefined ? undefined : sandboxOfRow(row as Row);
  }

  /** All that had not ended when they were last written. */
  unendedSandboxes(): SandboxRecord[] {
    return this.#prepare("SELECT * FROM sandboxes WHERE ended_at_ms IS NULL ORDER BY created_at_ms, id")
      .all()
      .map((row) => sandboxOfRow(row as Row));
  }

  listSandboxes(filter: SandboxFilter): SandboxRecord[] {
    const conditions: string[] = ["1 = 1"];
    const values: (string | number)[] = [];
    const where = (condition: string, ...more: (string | number)[]): void => {
      conditions.push(condition);
      values.push(...more);
    };
    if (filter.project !== undefined) where("project = ?", filter.project);
    if (filter.state !== undefined) where("state = ?", filter.state);
    if (filter.job !== undefined) where("json_extract(spec, '$.job') = ?", filter.job);
    for (const [key, value] of filter.labels) {
      where("json_extract(spec, ?) = ?", `$.labels."${key}"`, value);
    }
    if (filter.after !== undefined) where("id > ?", filter.after);
    const sql = `SELECT * FROM sandboxes WHERE ${conditions.join(" AND ")} ORDER BY id LIMIT ?`;
    return this.#prepare(sql)
      .all(...values, filter.limit)
      .map((row) => sandboxOfRow(row as Row));
  }

  /** The sandbox that was made under a key within its life of 24 h. */
  findIdempotency(project: string, key: string, nowMs: number): IdempotencyEntry | undefined {
    const row = this.#prepare(
      "SELECT sandbox, request_digest FROM idempotency WHERE project = ? AND key = ? AND created_at_ms > ?",
    ).get(project, key, nowMs - limits.idempotencyMs);
    if (row === undefined) return undefined;
    return { sandboxId: row["sandbox"] as SandboxId, requestDigest: String(row["request_digest"]) };
  }

  /** A creation that failed left nothing: its key may be used again. */
  async forgetKeysOf(id: SandboxId): Promise<void> {
    await this.#writes.write(() => this.#prepare("DELETE FROM idempotency WHERE sandbox = ?").run(id));
  }

  /** Facts of an image (a set of layers) as JSON text, found once and kept. */
  imageFacts(key: string): string | undefined {
    const row = this.#prepare("SELECT facts FROM images WHERE key = ?").get(key);
    return row === undefined ? undefined : String(row["facts"]);
  }

  async keepImageFacts(key: string, facts: string): Promise<void> {
    await this.#writes.write(() =>
      this.#prepare("INSERT OR REPLACE INTO images VALUES (?, ?)").run(key, facts),
    );
  }

  /** Forgets what is beyond its time or number, a bounded step at a time; true when more may be left. */
  async prune(nowMs: number): Promise<boolean> {
    let removed = 0;
    await this.#writes.write(() => {
      removed += this.#delete(
        "sandboxes",
        "id",
        "ended_at_ms IS NOT NULL AND (ended_at_ms < ? OR id IN (SELECT id FROM sandboxes WHERE ended_at_ms IS NOT NULL ORDER BY ended_at_ms DESC LIMIT -1 OFFSET ?))",
        [nowMs - endedKeptMs, endedKeptMax],
      );
      removed += Number(
        this.#prepare(
          `DELETE FROM idempotency WHERE (project, key) IN (SELECT project, key FROM idempotency WHERE created_at_ms < ? LIMIT ${pruneStep})`,
        ).run(nowMs - limits.idempotencyMs).changes,
      );
    });
    return (await this.commands.prune(nowMs)) || removed >= pruneStep;
  }

  [Symbol.dispose](): void {
    this.#writes.flush();
    this.#database.close();
  }

  #delete(table: string, key: string, condition: string, values: readonly number[]): number {
    const sql = `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${condition} LIMIT ${pruneStep})`;
    return Number(this.#prepare(sql).run(...values).changes);
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
