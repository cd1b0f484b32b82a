import type { DatabaseSync, StatementSync } from "node:sqlite";
import { PlatformError } from "@dsec/contracts";

interface Write {
  readonly apply: () => void;
  readonly written: PromiseWithResolvers<void>;
}

/**
 * Groups writes: all that arrive within one turn of the event loop share a transaction, so that under load one commit serves
 * many callers. A write counts once its promise has resolved.
 */
export class WriteQueue {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #waiting: Write[] = [];
  #scheduled = false;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#begin = database.prepare("BEGIN IMMEDIATE");
    this.#commit = database.prepare("COMMIT");
  }

  /** `apply` runs inside a transaction. Rejects with `unavailable` when the ledger cannot be written; nothing of the group counts then. */
  async write(apply: () => void): Promise<void> {
    const written = Promise.withResolvers<void>();
    this.#waiting.push({ apply, written });
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.flush());
    }
    return written.promise;
  }

  /** Writes at once what waits. */
  flush(): void {
    this.#scheduled = false;
    const group = this.#waiting;
    this.#waiting = [];
    if (group.length === 0) return;
    try {
      this.#begin.run();
      for (const { apply } of group) apply();
      this.#commit.run();
    } catch (cause) {
      this.#rollBack();
      const error = new PlatformError("unavailable", "Cannot write the node's ledger", { cause });
      for (const { written } of group) written.reject(error);
      return;
    }
    for (const { written } of group) written.resolve();
  }

  #rollBack(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
  }
}
