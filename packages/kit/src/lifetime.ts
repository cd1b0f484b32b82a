import type { Log } from "./log.ts";

/**
 * Owner of background work: everything started through it is awaited when it is disposed. A failure is logged once, here,
 * unless the work was told to end.
 */
export class Background implements AsyncDisposable {
  readonly #log: Log;
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Aborts when the owner ends. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts `work`; it must end soon after the signal aborts. */
  run(name: string, work: (signal: AbortSignal) => Promise<void>): void {
    const running = work(this.signal)
      .catch((error: unknown) => {
        if (!this.signal.aborted) this.#log.error({ err: error, work: name }, "background work failed");
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Runs `work` every `periodMs` until the owner ends; a slow round delays the next, never overlaps it. */
  every(name: string, periodMs: number, work: (signal: AbortSignal) => Promise<void>): void {
    this.run(name, async (signal) => {
      while (!signal.aborted) {
        await wait(periodMs, signal);
        if (signal.aborted) return;
        try {
          await work(signal);
        } catch (error) {
          if (!signal.aborted) this.#log.warn({ err: error, work: name }, "periodic work failed");
        }
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort();
    await Promise.all(this.#running);
  }
}

/** Resolves after `ms` or at once when `signal` aborts; never rejects. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}

/** Resolves with the first SIGTERM or SIGINT that the process gets. A second one ends the process at once. */
export async function untilToldToEnd(): Promise<NodeJS.Signals> {
  return await new Promise<NodeJS.Signals>((resolve) => {
    let told = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (told) process.exit(130);
      told = true;
      resolve(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}
