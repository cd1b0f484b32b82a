import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { digestOf } from "./digest.ts";

test("digestOf() does not depend on the order of keys and depends on everything else", () => {
  assert.equal(digestOf({ a: 1, b: { c: [1, 2], d: null } }), digestOf({ b: { d: null, c: [1, 2] }, a: 1 }));
  assert.notEqual(digestOf({ a: [1, 2] }), digestOf({ a: [2, 1] }));
  assert.notEqual(digestOf({ a: 1 }), digestOf({ a: "1" }));
});

test("digestOf() of any JSON value is that of its copy", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(digestOf(value), digestOf(JSON.parse(JSON.stringify(value))));
    }),
  );
});
