import assert from "node:assert/strict";
import { test } from "node:test";
import type { Heartbeat } from "@dsec/contracts";
import { NodeWatcher } from "./nodes.ts";

const stored = { id: "aaaa", hostname: "h", url: "https://h:1", joinedAtMs: 1 };
const load = {
  sandboxes: 1,
  creating: 0,
  sandboxesMax: 10,
  cpuCores: 1,
  memoryTotalMib: 1,
  memoryAvailableMib: 1,
  memoryPressure: 0,
  cpuPressure: 0,
  diskFreeMib: 1,
  admitting: true,
};
const beat = (sequence: number, more: Partial<Heartbeat> = {}): Heartbeat => ({
  nodeId: "aaaa",
  bootId: "boot-one",
  sequence,
  url: "https://h:2",
  load,
  backends: ["container"],
  capabilities: [],
  ...more,
});

function watch() {
  const clock = { nowMs: 100_000 };
  const watcher = new NodeWatcher(() => clock.nowMs);
  watcher.know([stored]);
  return { clock, watcher };
}

test("NodeWatcher calls a node suspect after 3 silent periods and lost after 10, and healthy when it is heard again", () => {
  const { clock, watcher } = watch();
  assert.equal(watcher.healthOf("aaaa"), "suspect");
  watcher.hear(beat(1));
  for (const [afterMs, health] of [
    [0, "healthy"],
    [2_999, "healthy"],
    [3_000, "suspect"],
    [9_999, "suspect"],
    [10_000, "lost"],
  ] as const) {
    clock.nowMs = 100_000 + afterMs;
    assert.equal(watcher.healthOf("aaaa"), health, String(afterMs));
  }
  watcher.hear(beat(2));
  assert.equal(watcher.healthOf("aaaa"), "healthy");
});

test("NodeWatcher loses a node that was never heard, counted from its own start; an unknown one is lost", () => {
  const { clock, watcher } = watch();
  clock.nowMs += 10_000;
  assert.equal(watcher.healthOf("aaaa"), "lost");
  assert.equal(watcher.healthOf("zzzz"), "lost");
  watcher.hear(beat(1, { nodeId: "zzzz" }));
  assert.equal(watcher.isKnown("zzzz"), false);
});

test("NodeWatcher drops an older report of the same process, and takes one of a new process", () => {
  const { watcher } = watch();
  watcher.hear(beat(5));
  watcher.hear(beat(4, { url: "https://old:1" }));
  assert.equal(watcher.urlOf("aaaa"), "https://h:2");
  watcher.hear(beat(0, { bootId: "boot-two", url: "https://new:1" }));
  assert.equal(watcher.urlOf("aaaa"), "https://new:1");
});

test("NodeWatcher counts its own placements until the next report", () => {
  const { watcher } = watch();
  watcher.hear(beat(1));
  watcher.placed("aaaa");
  watcher.placed("aaaa");
  assert.equal(watcher.forPlacement()[0]?.recent, 2);
  watcher.hear(beat(2));
  assert.equal(watcher.forPlacement()[0]?.recent, 0);
});

test("NodeWatcher takes up a new address of a known node and keeps its health", () => {
  const { watcher } = watch();
  assert.equal(watcher.urlOf("aaaa"), "https://h:1");
  watcher.know([{ ...stored, hostname: "moved", url: "https://moved:1" }]);
  assert.equal(watcher.urlOf("aaaa"), "https://moved:1");
  watcher.hear(beat(1));
  watcher.know([stored]);
  assert.equal(watcher.healthOf("aaaa"), "healthy");
  assert.equal(watcher.views()[0]?.load?.sandboxes, 1);
});
