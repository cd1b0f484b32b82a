import type { StatementSync } from "node:sqlite";
import type { Outcome, SandboxId } from "@dsec/contracts";
import { type CommandRecord, commandOfRow, type Row } from "./records.ts";
import type { WriteQueue } from "./write-queue.ts";

const endedKeptPerSandbox = 1_024;
/** Commands of an ended sandbox are kept this long after its end. */
const keptAfterEndMs = 60 * 60 * 1000;
const pruneStep = 2_000;

/** The commands of all sandboxes: intent before, outcome after. `actionId` is unique in its sandbox. */
export class CommandLog {
  readonly #prepare: (sql: string) => StatementSync;
  readonly #writes: WriteQueue;

  constructor(prepare: (sql: string) => StatementSync, writes: WriteQueue) {
    this.#prepare = prepare;
    this.#writes = writes;
  }

  /** Written before init hears of the command. */
  async addIntent(record: Omit<CommandRecord, "commandId" | "outcome">): Promise<void> {
    await this.#writes.write(() =>
      this.#prepare(
        "INSERT INTO commands (sandbox, action_id, request_digest, detached, started_at_ms) VALUES (?, ?, ?, ?, ?)",
      ).run(
        record.sandboxId,
        record.actionId,
        record.requestDigest,
        record.detached ? 1 : 0,
        record.startedAtMs,
      ),
    );
  }

  /** Init refused the command: the action was never done and may be asked for again. */
  async removeIntent(sandboxId: SandboxId, actionId: string): Promise<void> {
    await this.#writes.write(() =>
      this.#prepare("DELETE FROM commands WHERE sandbox = ? AND action_id = ? AND outcome IS NULL").run(
        sandboxId,
        actionId,
      ),
    );
  }

  async setCommandId(sandboxId: SandboxId, actionId: string, commandId: string): Promise<void> {
    await this.#writes.write(() =>
      this.#prepare("UPDATE commands SET command_id = ? WHERE sandbox = ? AND action_id = ?").run(
        commandId,
        sandboxId,
        actionId,
      ),
    );
  }

  async setOutcome(
    sandboxId: SandboxId,
    command: { readonly actionId: string; readonly commandId: string | null },
    outcome: Outcome,
  ): Promise<void> {
    await this.#writes.write(() =>
      this.#prepare(
        "UPDATE commands SET command_id = coalesce(?, command_id), outcome = ? WHERE sandbox = ? AND action_id = ? AND outcome IS NULL",
      ).run(command.commandId, JSON.stringify(outcome), sandboxId, command.actionId),
    );
  }

  byAction(sandboxId: SandboxId, actionId: string): CommandRecord | undefined {
    return one(
      this.#prepare("SELECT * FROM commands WHERE sandbox = ? AND action_id = ?").get(sandboxId, actionId),
    );
  }

  byId(sandboxId: SandboxId, commandId: string): CommandRecord | undefined {
    return one(
      this.#prepare("SELECT * FROM commands WHERE sandbox = ? AND command_id = ?").get(sandboxId, commandId),
    );
  }

  /** In order of their start. */
  list(sandboxId: SandboxId): CommandRecord[] {
    return this.#prepare("SELECT * FROM commands WHERE sandbox = ? ORDER BY sequence")
      .all(sandboxId)
      .map((row) => commandOfRow(row as Row));
  }

  /** Those whose end the ledger does not know. */
  open(sandboxId: SandboxId): CommandRecord[] {
    return this.#prepare("SELECT * FROM commands WHERE sandbox = ? AND outcome IS NULL ORDER BY sequence")
      .all(sandboxId)
      .map((row) => commandOfRow(row as Row));
  }

  /** Keeps the last 1,024 ended commands of a sandbox. */
  async trim(sandboxId: SandboxId): Promise<void> {
    await this.#writes.write(() =>
      this.#prepare(
        "DELETE FROM commands WHERE sequence IN (SELECT sequence FROM commands WHERE sandbox = ? AND outcome IS NOT NULL ORDER BY sequence DESC LIMIT -1 OFFSET ?)",
      ).run(sandboxId, endedKeptPerSandbox),
    );
  }

  /** Forgets commands of sandboxes that ended an hour ago or are forgotten; true when more may be left. */
  async prune(nowMs: number): Promise<boolean> {
    let removed = 0;
    await this.#writes.write(() => {
      const result = this.#prepare(
        `DELETE FROM commands WHERE sequence IN (
           SELECT sequence FROM commands LEFT JOIN sandboxes ON sandboxes.id = commands.sandbox
           WHERE sandboxes.id IS NULL OR sandboxes.ended_at_ms < ? LIMIT ${pruneStep})`,
      ).run(nowMs - keptAfterEndMs);
      removed = Number(result.changes);
    });
    return removed >= pruneStep;
  }
}

function one(row: unknown): CommandRecord | undefined {
  return row === undefined ? undefined : commandOfRow(row as Row);
}
