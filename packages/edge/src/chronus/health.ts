import type { ChronusConnection } from "./connection.ts";

const tickMs = 1_000;
/** Silent ticks after which a peer counts as unreachable. Ticks, not time: a stalled edge must not blame its sandboxes. */
const unreachableAfterTicks = 10;

/** Watches that chronus answers: one timer for all connections of the node. */
export class HealthMonitor implements Disposable {
  readonly #watched = new Map<ChronusConnection, () => void>();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#tick(), tickMs);
    this.#timer.unref();
  }

  /** Calls `unreachable` once when the peer was silent for 10 s. Watching ends then, or when the connection closes. */
  watch(connection: ChronusConnection, unreachable: () => void): void {
    this.#watched.set(connection, unreachable);
  }

  #tick(): void {
    for (const [connection, unreachable] of this.#watched) {
      if (connection.closed) {
        this.#watched.delete(connection);
      } else if (connection.tick() > unreachableAfterTicks) {
        this.#watched.delete(connection);
        unreachable();
      }
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#watched.clear();
  }
}
