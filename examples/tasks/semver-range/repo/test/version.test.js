"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { compareVersions, parseVersion } = require("../lib");

test("parses the three numbers and the prerelease", () => {
  assert.deepEqual(parseVersion("1.20.3-beta.1"), {
    major: 1,
    minor: 20,
    patch: 3,
    prerelease: ["beta", "1"],
  });
});

test("refuses what is not a version", () => {
  for (const text of ["1.2", "1.2.3.4", "01.2.3", "v1.2.3", "", "1.2.x"]) {
    assert.throws(() => parseVersion(text), TypeError);
  }
});

test("orders as the specification does", () => {
  const inOrder = [
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0",
    "1.0.10",
    "1.2.0",
  ];
  const sorted = [...inOrder].reverse().sort((a, b) => compareVersions(parseVersion(a), parseVersion(b)));
  assert.deepEqual(sorted, inOrder);
});
