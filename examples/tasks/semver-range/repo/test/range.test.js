"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { maxSatisfying, satisfies } = require("../lib");

test("comparators, all of which must hold", () => {
  assert.equal(satisfies("1.5.0", ">=1.2.0 <2.0.0"), true);
  assert.equal(satisfies("2.0.0", ">=1.2.0 <2.0.0"), false);
  assert.equal(satisfies("1.2.3", "1.2.3"), true);
  assert.equal(satisfies("7.0.0", "*"), true);
});

test("alternatives, one of which is enough", () => {
  assert.equal(satisfies("3.1.0", "^1.0.0 || ^3.0.0"), true);
  assert.equal(satisfies("2.1.0", "^1.0.0 || ^3.0.0"), false);
});

test("tilde keeps the minor version", () => {
  assert.equal(satisfies("1.2.9", "~1.2.3"), true);
  assert.equal(satisfies("1.3.0", "~1.2.3"), false);
  assert.equal(satisfies("0.0.9", "~0.0.3"), true);
});

test("caret keeps the major version", () => {
  assert.equal(satisfies("1.9.0", "^1.2.3"), true);
  assert.equal(satisfies("1.2.2", "^1.2.3"), false);
  assert.equal(satisfies("2.0.0", "^1.2.3"), false);
});

test("caret of 0.x keeps the minor version", () => {
  assert.equal(satisfies("0.2.9", "^0.2.3"), true);
  assert.equal(satisfies("0.3.0", "^0.2.3"), false);
  assert.equal(satisfies("0.1.0", "^0.1.0"), true);
});

test("caret of 0.0.x keeps the patch", () => {
  assert.equal(satisfies("0.0.3", "^0.0.3"), true);
  assert.equal(satisfies("0.0.4", "^0.0.3"), false);
});

test("the highest that fits", () => {
  assert.equal(maxSatisfying(["0.2.1", "0.2.10", "0.3.0"], "^0.2.0"), "0.2.10");
  assert.equal(maxSatisfying(["0.1.0"], "^1.0.0"), null);
});
