import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadMonitor, refuseCreation } from "./admission.ts";

const limits = {
  sandboxesMax: 10,
  creationsMax: 4,
  memoryReserveMib: 500,
  diskReserveMib: 100,
  memoryPressureMax: 20,
};
const load = {
  memoryTotalMib: 2_000,
  memoryAvailableMib: 1_000,
  memoryPressure: 0,
  cpuPressure: 99,
  diskFreeMib: 1_000,
  cpuCores: 2,
};
const free = { sandboxes: 0, creating: 0 };

test("a node with room takes a sandbox, however busy its processors are", () => {
  assert.equal(refuseCreation(free, load, limits), undefined);
});

test("each bound by itself refuses, as no_capacity with a time to come back", () => {
  const refusals = [
    refuseCreation({ sandboxes: 10, creating: 0 }, load, limits),
    refuseCreation({ sandboxes: 4, creating: 4 }, load, limits),
    refuseCreation(free, { ...load, memoryAvailableMib: 503 }, limits),
    refuseCreation(free, { ...load, memoryPressure: 21 }, limits),
    refuseCreation(free, { ...load, diskFreeMib: 99 }, limits),
  ];
  for (const refusal of refusals) {
    assert.equal(refusal?.code, "no_capacity");
    assert.ok((refusal?.retryAfterMs ?? 0) > 0);
  }
  assert.equal(new Set(refusals.map((each) => each?.message)).size, refusals.length);
});

test("creations under way count against memory that they have not taken yet", () => {
  const tight = { ...load, memoryAvailableMib: 506 };
  assert.equal(refuseCreation(free, tight, limits), undefined);
  assert.equal(refuseCreation({ sandboxes: 1, creating: 1 }, tight, limits)?.code, "no_capacity");
});

test("LoadMonitor reads the host once for many who ask", () => {
  let reads = 0;
  const monitor = new LoadMonitor(() => {
    reads++;
    return load;
  });
  for (let i = 0; i < 100; i++) assert.equal(monitor.current, load);
  assert.equal(reads, 1);
});
