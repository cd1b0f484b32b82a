const timerMsMax = 2 ** 31 - 1;

export interface ActivityLimits {
  readonly idleTimeoutMs: number;
  /** Milliseconds since the epoch; null: no end. */
  readonly lifetimeExpiresAtMs: number | null;
}

/**
 * Watches the idle and life time of one sandbox. It is busy while anything is held: a request, a foreground command, an attached
 * stream, a port connection. One timer, armed for the next possible end only.
 */
export class Activity implements Disposable {
  readonly #expired: (cause: "idle_expired" | "lifetime_expired") => void;
  #limits: ActivityLimits;
  #holds = 0;
  #idleSinceMs = Date.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: ActivityLimits, expired: (cause: "idle_expired" | "lifetime_expired") => void) {
    this.#limits = limits;
    this.#expired = expired;
    this.#arm();
  }

  get limits(): ActivityLimits {
    return this.#limits;
  }

  set limits(limits: ActivityLimits) {
    this.#limits = limits;
    this.touch();
    this.#arm();
  }

  /** When idleness would end the sandbox as things stand; null while it is busy. */
  get idleExpiresAtMs(): number | null {
    return this.#holds > 0 ? null : this.#idleSinceMs + this.#limits.idleTimeoutMs;
  }

  touch(): void {
    this.#idleSinceMs = Date.now();
  }

  /** Keeps the sandbox busy until the answer is disposed. */
  hold(): Disposable {
    this.#holds++;
    let isHeld = true;
    return {
      [Symbol.dispose]: (): void => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds--;
        this.touch();
      },
    };
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  /** The timer is not moved at each request: when it fires early it is armed again. */
  #arm(): void {
    clearTimeout(this.#timer);
    const nowMs = Date.now();
    const idleAtMs = this.idleExpiresAtMs ?? nowMs + this.#limits.idleTimeoutMs;
    const nextMs = Math.min(idleAtMs, this.#limits.lifetimeExpiresAtMs ?? Number.POSITIVE_INFINITY);
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(nextMs - nowMs, 1), timerMsMax));
    this.#timer.unref();
  }

  #look(): void {
    const nowMs = Date.now();
    const { lifetimeExpiresAtMs } = this.#limits;
    if (lifetimeExpiresAtMs !== null && lifetimeExpiresAtMs <= nowMs) this.#expired("lifetime_expired");
    else if (this.idleExpiresAtMs !== null && this.idleExpiresAtMs <= nowMs) this.#expired("idle_expired");
    else this.#arm();
  }
}
