import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { median, spread, summarise, thin } from "./statistics.ts";

test("summarise() gives the usual quantiles", () => {
  const values = Array.from({ length: 101 }, (_, i) => 100 - i);
  assert.deepEqual(summarise(values), { count: 101, min: 0, p50: 50, p90: 90, p99: 99, max: 100, mean: 50 });
});

test("summarise() of nothing is an error, not NaN", () => {
  assert.throws(() => summarise([]), RangeError);
});

test("median() lies between the two middle values", () => {
  assert.equal(median([4, 1, 3, 2]), 2.5);
});

test("spread() is the range against the median", () => {
  assert.equal(spread([90, 100, 120]), 0.3);
  assert.equal(spread([5]), 0);
});

test("summarise() is ordered and inside the range, and thin() keeps its ends", () => {
  const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(values, (list) => {
      const { min, p50, p90, p99, max } = summarise(list);
      assert.deepEqual(
        [min, p50, p90, p99, max].toSorted((a, b) => a - b),
        [min, p50, p90, p99, max],
      );
      const thinned = thin(list, 20);
      assert.equal(thinned.length, Math.min(20, list.length));
      assert.equal(thinned[0], min);
      assert.equal(thinned.at(-1), max);
    }),
  );
});
