import type { SandboxId } from "@dsec/contracts";
import type { Log } from "@dsec/kit";
import { WireError } from "../chronus/frames.ts";
import type { InitClient } from "../chronus/init-client.ts";
import type { CommandLog } from "../ledger/command-log.ts";

const delayMs = 50;
const trimAfter = 64;

export interface AcknowledgementContext {
  readonly sandboxId: SandboxId;
  readonly init: () => InitClient;
  readonly log: CommandLog;
  readonly logger: Log;
}

/** Tells init, some at a time, which outcomes are in the ledger, and keeps the ledger's part of this sandbox within its bound. */
export class Acknowledgements {
  readonly #context: AcknowledgementContext;
  #waiting = new Set<string>();
  #sinceTrim = 0;

  constructor(context: AcknowledgementContext) {
    this.#context = context;
  }

  add(commandId: string): void {
    this.#waiting.add(commandId);
    if (this.#waiting.size === 1) setTimeout(() => void this.#send(), delayMs).unref();
  }

  async #send(): Promise<void> {
    const commandIds = [...this.#waiting];
    this.#waiting = new Set();
    const { sandboxId, init, log, logger } = this.#context;
    try {
      this.#sinceTrim += commandIds.length;
      if (this.#sinceTrim >= trimAfter) {
        this.#sinceTrim = 0;
        await log.trim(sandboxId);
      }
      await init().acknowledge(commandIds);
    } catch (error) {
      // Out of touch or ended: init says again what it still has when it is connected again.
      if (!(error instanceof WireError)) logger.debug({ err: error, sandboxId }, "outcomes not acknowledged");
    }
  }
}
