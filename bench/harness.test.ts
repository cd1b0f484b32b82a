import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Contender,
  findSeries,
  measureInterleaved,
  ratio,
  runConcurrently,
  sustainedRate,
} from "./harness.ts";

const signal = new AbortController().signal;

function contender(name: string, durationMs: number, order: string[], share = 1): Contender {
  return {
    name,
    share,
    run(operations, inFlight) {
      order.push(`${name}${inFlight}:${operations}`);
      const durationsMs = Array.from({ length: operations }, () => durationMs);
      return Promise.resolve({ durationsMs, elapsedMs: (operations * durationMs) / inFlight, failures: 0 });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

test("measureInterleaved() warms up and then goes A B A B at each level", async () => {
  const order: string[] = [];
  const levels = [
    { inFlight: 1, operations: 10 },
    { inFlight: 4, operations: 20 },
  ];
  const contenders = [contender("a", 10, order), contender("b", 40, order, 0.5)];
  const series = await measureInterleaved(contenders, { levels, rounds: 2, progress: () => {} }, signal);
  assert.deepEqual(order, [
    "a1:2",
    "b1:1",
    "a1:10",
    "b1:5",
    "a1:10",
    "b1:5",
    "a4:4",
    "b4:4",
    "a4:20",
    "b4:10",
    "a4:20",
    "b4:10",
  ]);
  assert.equal(findSeries(series, "a", 1)?.latencyMs.p50, 10);
  assert.equal(findSeries(series, "a", 1)?.latencyMs.count, 20);
  assert.equal(findSeries(series, "b", 4)?.rate, 100);
  assert.equal(sustainedRate(series, "a"), 400);
  assert.equal(ratio(sustainedRate(series, "a"), sustainedRate(series, "b")), 4);
  assert.equal(ratio(sustainedRate(series, "c"), 1), undefined);
});

test("measureInterleaved() stops when it is aborted", async () => {
  const plan = { levels: [{ inFlight: 1, operations: 1 }], rounds: 1, progress: () => {} };
  await assert.rejects(measureInterleaved([contender("a", 1, [])], plan, AbortSignal.abort()), {
    name: "AbortError",
  });
});

test("runConcurrently() does every operation once and never more than allowed at a time", async () => {
  const seen: number[] = [];
  let now = 0;
  let most = 0;
  const operation = async (index: number) => {
    most = Math.max(most, ++now);
    await new Promise(setImmediate);
    seen.push(index);
    now -= 1;
  };
  const result = await runConcurrently(operation, 50, 8);
  assert.equal(most, 8);
  assert.deepEqual(
    seen.toSorted((a, b) => a - b),
    Array.from({ length: 50 }, (_, i) => i),
  );
  assert.equal(result.durationsMs.length, 50);
});

test("runConcurrently() counts failures and throws when nothing worked", async () => {
  const some = await runConcurrently(
    (index) => (index % 2 === 0 ? Promise.resolve() : Promise.reject(new Error("no"))),
    10,
    2,
  );
  assert.deepEqual([some.durationsMs.length, some.failures], [5, 5]);
  await assert.rejects(
    runConcurrently(() => Promise.reject(new Error("no")), 3, 2),
    (error) => error instanceof Error && error.cause instanceof Error && error.cause.message === "no",
  );
});
