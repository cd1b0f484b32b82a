import assert from "node:assert/strict";
import { test } from "node:test";
import { Background } from "./lifetime.ts";
import { silentLog } from "./log.ts";
import { retry } from "./retry.ts";

test("Background awaits what it started when it is disposed", async () => {
  const background = new Background(silentLog());
  let ended = false;
  background.run("work", async (signal) => {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    ended = true;
  });
  await background[Symbol.asyncDispose]();
  assert.equal(ended, true);
});

test("retry() stops at the bound, at an error that is final, and when told to", async () => {
  const options = {
    attemptsMax: 3,
    firstDelayMs: 1,
    delayMsMax: 2,
    isRetryable: (error: unknown) => error instanceof RangeError,
  };
  let calls = 0;
  const failing = (error: Error) => async (): Promise<never> => {
    calls += 1;
    throw error;
  };
  await assert.rejects(
    retry(failing(new RangeError("again")), options, AbortSignal.timeout(5_000)),
    RangeError,
  );
  assert.equal(calls, 3);
  calls = 0;
  await assert.rejects(
    retry(failing(new TypeError("final")), options, AbortSignal.timeout(5_000)),
    TypeError,
  );
  assert.equal(calls, 1);
  await assert.rejects(retry(failing(new RangeError("again")), options, AbortSignal.abort()), {
    name: "AbortError",
  });
  assert.equal(calls, 1);
});
