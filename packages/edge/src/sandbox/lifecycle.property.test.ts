import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cause, causeFaults, failureOf, isPlatformError } from "@dsec/contracts";
import fc from "fast-check";
import { advance, type Lifecycle, type LifecycleEvent } from "./lifecycle.ts";

const reason = fc
  .option(fc.constantFrom(...(Object.keys(causeFaults) as Cause[])), { nil: null })
  .map((cause) => ({ end: cause === null ? null : failureOf(cause), message: null }));
const event: fc.Arbitrary<LifecycleEvent> = fc.oneof(
  fc.constant({ kind: "created" } as const),
  reason.map((each) => ({ kind: "creationFailed", reason: each, atMs: 1 }) as const),
  reason.map((each) => ({ kind: "endBegan", reason: each }) as const),
  fc.constant({ kind: "gone", atMs: 2 } as const),
);
const order: readonly Lifecycle["kind"][] = [
  "creating",
  "running",
  "paused",
  "stopping",
  "stopped",
  "failed",
];

test("no order of events leads back, out of an end, or to another reason than the first", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      let state = { kind: "creating" } as Lifecycle;
      for (const each of events) {
        let next: Lifecycle;
        try {
          next = advance(state, each);
        } catch (error) {
          assert.ok(isPlatformError(error) && error.code === "invalid_state");
          continue;
        }
        assert.ok(order.indexOf(next.kind) > order.indexOf(state.kind));
        assert.ok(state.kind !== "stopped" && state.kind !== "failed");
        if (state.kind === "stopping" && next.kind !== "stopping")
          assert.equal("reason" in next && next.reason, state.reason);
        state = next;
      }
    }),
  );
});

test("a wanted end is a stop, every other a failure", () => {
  for (const cause of Object.keys(causeFaults) as Cause[]) {
    const stopping = advance(
      { kind: "running" },
      { kind: "endBegan", reason: { end: failureOf(cause), message: null } },
    );
    const wanted = ["idle_expired", "lifetime_expired", "cancelled"].includes(cause);
    assert.equal(advance(stopping, { kind: "gone", atMs: 1 }).kind, wanted ? "stopped" : "failed");
  }
});
