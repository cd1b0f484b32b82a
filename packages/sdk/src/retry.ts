import type { DsecError } from "./errors.ts";

const firstDelayMs = 50;
const delayMsMax = 2_000;

/** The wait before attempt `number + 1` (from 1), in milliseconds: what the platform asked for, else doubling with jitter. */
export function delayBeforeRetryMs(number: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs !== undefined) return retryAfterMs * (1 + Math.random() / 4);
  const whole = Math.min(firstDelayMs * 2 ** (number - 1), delayMsMax);
  return whole / 2 + (Math.random() * whole) / 2;
}

/** Whether the same call may succeed later. Errors that say when are retried; others only when nothing has decided yet. */
export function isRetryable(error: DsecError): boolean {
  if (error.retryAfterMs !== undefined) return true;
  return ["too_many", "unavailable", "deadline", "outcome_unknown"].includes(error.code);
}

/** Resolves after `ms` or at once when `signal` aborts; never rejects. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}
