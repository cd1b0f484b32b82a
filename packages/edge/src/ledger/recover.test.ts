import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf, type SandboxId } from "@dsec/contracts";
import fc from "fast-check";
import { recordStates, type SandboxRecord } from "./records.ts";
import { planRecovery } from "./recover.ts";

const idArbitrary = fc
  .integer({ min: 0, max: 9 })
  .map((n) => `sbaaaa${"b".repeat(19)}${"abcdefghij"[n]}` as SandboxId);
const recordArbitrary = fc.record({
  id: idArbitrary,
  state: fc.constantFrom(...recordStates.slice(0, 4)),
  end: fc.constantFrom(null, failureOf("idle_expired"), failureOf("internal")),
});

test("planRecovery() adopts exactly the living that were running, ends every other record, removes what no record explains", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(recordArbitrary, { selector: (record) => record.id }),
      fc.uniqueArray(idArbitrary),
      fc.uniqueArray(idArbitrary),
      (partial, traces, alive) => {
        const records = partial as unknown as SandboxRecord[];
        const plan = planRecovery(records, {
          ids: new Set(traces),
          isAlive: (record) => alive.includes(record.id),
        });
        const adopted = plan.adopt.map((record) => record.id);
        const ended = plan.end.map(({ record }) => record.id);
        assert.deepEqual(
          adopted,
          records
            .filter((record) => ["running", "paused"].includes(record.state) && alive.includes(record.id))
            .map((record) => record.id),
        );
        assert.deepEqual([...adopted, ...ended].toSorted(), records.map((record) => record.id).toSorted());
        const known = new Set(records.map((record) => record.id));
        assert.deepEqual(
          plan.remove,
          traces.filter((id) => !known.has(id)),
        );
      },
    ),
  );
});

test("planRecovery() keeps the reason that a stopping sandbox was given", () => {
  const record = {
    id: "x",
    state: "stopping",
    end: failureOf("idle_expired"),
    message: null,
  } as unknown as SandboxRecord;
  const plan = planRecovery([record], { ids: new Set(), isAlive: () => true });
  assert.deepEqual(plan.end[0], { record, state: "stopped", end: failureOf("idle_expired"), message: null });
});
