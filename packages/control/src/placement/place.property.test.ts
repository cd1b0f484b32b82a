import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeLoad } from "@dsec/contracts";
import fc from "fast-check";
import { canTake, orderOf, type PlacementNode, rank } from "./place.ts";

const loadOf = (sandboxes: number, creating: number, sandboxesMax: number, admitting: boolean): NodeLoad => ({
  sandboxes,
  creating,
  sandboxesMax,
  cpuCores: 1,
  memoryTotalMib: 1,
  memoryAvailableMib: 1,
  memoryPressure: 0,
  cpuPressure: 0,
  diskFreeMib: 1,
  admitting,
});

const load = fc.option(
  fc.tuple(fc.nat(20), fc.nat(5), fc.nat(20), fc.boolean()).map((parts) => loadOf(...parts)),
  { nil: null },
);
const node: fc.Arbitrary<PlacementNode> = fc.record({
  id: fc.stringMatching(/^[a-z2-7]{4}$/),
  health: fc.constantFrom("healthy", "suspect", "lost"),
  backends: fc.subarray(["container", "microvm"] as const),
  load,
  recent: fc.nat(5),
});
const nodes = fc.uniqueArray(node, { selector: ({ id }) => id, maxLength: 12 });
const key = fc.string({ maxLength: 32 });

test("orderOf() keeps all nodes, whatever order they are given in", () => {
  fc.assert(
    fc.property(nodes, key, (all, text) => {
      const order = orderOf(all, text).map(({ id }) => id);
      assert.deepEqual(order.toSorted(), all.map(({ id }) => id).toSorted());
      assert.deepEqual(
        orderOf(all.toReversed(), text).map(({ id }) => id),
        order,
      );
    }),
  );
});

test("orderOf() moves no other node when one goes", () => {
  fc.assert(
    fc.property(nodes, key, fc.nat(), (all, text, pick) => {
      if (all.length === 0) return;
      const gone = all[pick % all.length]?.id;
      assert.deepEqual(
        orderOf(
          all.filter(({ id }) => id !== gone),
          text,
        ),
        orderOf(all, text).filter(({ id }) => id !== gone),
      );
    }),
  );
});

test("rank() names only nodes that can take the sandbox, all of them, least used first", () => {
  fc.assert(
    fc.property(nodes, (all) => {
      const ranked = rank(all, "container");
      assert.deepEqual(new Set(ranked), new Set(all.filter((one) => canTake(one, "container"))));
      const shares = ranked.map((one) => {
        assert.ok(one.load !== null && one.load.admitting && one.health === "healthy");
        assert.ok(one.backends.includes("container"));
        return (one.load.sandboxes + one.load.creating + one.recent) / one.load.sandboxesMax;
      });
      assert.ok(shares.every((share) => share < 1));
      assert.deepEqual(
        shares,
        shares.toSorted((one, two) => one - two),
      );
    }),
  );
});

test("keys spread evenly over nodes, also near ones", () => {
  const fleet = Array.from({ length: 10 }, (_, index) => ({ id: `aaa${"abcdefghij"[index] ?? ""}` }));
  const firsts = new Map<string, number>();
  for (let index = 0; index < 10_000; index += 1) {
    const first = orderOf(fleet, `key-${index}`)[0]?.id ?? "";
    firsts.set(first, (firsts.get(first) ?? 0) + 1);
  }
  assert.equal(firsts.size, 10);
  for (const [id, count] of firsts) assert.ok(count > 800 && count < 1_200, `${id}: ${count}`);
});

test("k choices by load keep nodes close to each other", () => {
  let fleet: PlacementNode[] = Array.from({ length: 20 }, (_, index) => ({
    id: `n${index}`,
    health: "healthy",
    backends: ["container"],
    load: loadOf(0, 0, 1_000, true),
    recent: 0,
  }));
  for (let index = 0; index < 4_000; index += 1) {
    const chosen = rank(orderOf(fleet, `key-${index}`).slice(0, 3), "container")[0];
    fleet = fleet.map((one) => (one.id === chosen?.id ? { ...one, recent: one.recent + 1 } : one));
  }
  const counts = fleet.map(({ recent }) => recent);
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 10, counts.join(" "));
});
