import { setTimeout as delay } from "node:timers/promises";

export interface RetryOptions {
  /** Attempts in all, at least 1. */
  readonly attemptsMax: number;
  /** Wait before the second attempt; doubles each time, with jitter of half. */
  readonly firstDelayMs: number;
  readonly delayMsMax: number;
  readonly isRetryable: (error: unknown) => boolean;
}

/** Runs `attempt` until it succeeds, fails for good, or attempts are used up; throws the last error. */
export async function retry<Result>(
  attempt: (signal: AbortSignal) => Promise<Result>,
  options: RetryOptions,
  signal: AbortSignal,
): Promise<Result> {
  for (let number = 1; ; number += 1) {
    signal.throwIfAborted();
    try {
      return await attempt(signal);
    } catch (error) {
      if (number >= options.attemptsMax || !options.isRetryable(error)) throw error;
    }
    await delay(backoffMs(number, options), undefined, { signal });
  }
}

/** The wait after attempt `number` (from 1), in milliseconds. */
export function backoffMs(
  number: number,
  options: Pick<RetryOptions, "firstDelayMs" | "delayMsMax">,
): number {
  const whole = Math.min(options.firstDelayMs * 2 ** (number - 1), options.delayMsMax);
  return whole / 2 + (Math.random() * whole) / 2;
}
