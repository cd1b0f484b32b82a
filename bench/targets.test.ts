import assert from "node:assert/strict";
import { test } from "node:test";
import { allFloorsMet, judge } from "./targets.ts";

const latency = { metric: "p50", unit: "ms", better: "lower", floor: 20, target: 10 } as const;
const rate = { metric: "rate", unit: "/s", better: "higher", floor: 100, target: 200 } as const;
const goal = { metric: "share", unit: "x", better: "higher", target: 0.6 } as const;

test("judge() holds a value against floor and target, whichever direction is better", () => {
  const verdict = (specification: Parameters<typeof judge>[0], value: number | undefined) => {
    const { floorMet, targetMet } = judge(specification, value);
    return [floorMet, targetMet];
  };
  assert.deepEqual(verdict(latency, 9.9), [true, true]);
  assert.deepEqual(verdict(latency, 15), [true, false]);
  assert.deepEqual(verdict(latency, 20), [false, false]);
  assert.deepEqual(verdict(rate, 99.9), [false, false]);
  assert.deepEqual(verdict(rate, 100), [true, false]);
  assert.deepEqual(verdict(rate, 200), [true, true]);
});

test("judge() lets what was not measured meet nothing but a missing floor", () => {
  assert.equal(judge(rate, undefined).floorMet, false);
  assert.deepEqual([judge(goal, undefined).floorMet, judge(goal, undefined).targetMet], [true, false]);
});

test("allFloorsMet() wants every floor, whatever the targets say, and at least one", () => {
  assert.equal(allFloorsMet([judge(latency, 15), judge(rate, 150), judge(goal, 0.1)]), true);
  assert.equal(allFloorsMet([judge(latency, 15), judge(rate, undefined)]), false);
  assert.equal(allFloorsMet([judge(goal, 1)]), false);
  assert.equal(allFloorsMet([]), false);
});
