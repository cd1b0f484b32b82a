import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { isNodeId, isSandboxId, layerIdOf, layerIdPattern, newNodeId, newSandboxId, nodeOf } from "./ids.ts";

test("newSandboxId() makes an id that names its node and passes the pattern", () => {
  for (let round = 0; round < 200; round += 1) {
    const node = newNodeId();
    const id = newSandboxId(node);
    assert.ok(isNodeId(node));
    assert.ok(isSandboxId(id));
    assert.equal(nodeOf(id), node);
  }
});

test("newSandboxId() never repeats in 10,000 ids", () => {
  const node = newNodeId();
  const ids = new Set(Array.from({ length: 10_000 }, () => newSandboxId(node)));
  assert.equal(ids.size, 10_000);
});

test("isSandboxId() refuses what would not be safe in a path or host name", () => {
  for (const text of [
    "",
    "sb",
    "sbaaaa",
    `sb${"a".repeat(25)}`,
    `sb${"A".repeat(24)}`,
    `sb../..${"a".repeat(18)}`,
    `sb${"a".repeat(24)}\n`,
  ]) {
    assert.equal(isSandboxId(text), false, JSON.stringify(text));
  }
});

test("layerIdOf() gives the same id for the same digest and another for another", () => {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  assert.match(layerIdOf(digest("a")), new RegExp(layerIdPattern));
  assert.equal(layerIdOf(digest("a")), layerIdOf(digest("a")));
  assert.notEqual(layerIdOf(digest("a")), layerIdOf(digest("b")));
});
