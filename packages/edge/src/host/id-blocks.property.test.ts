import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isPlatformError } from "@dsec/contracts";
import fc from "fast-check";
import { claimIdBlock } from "./id-blocks.ts";

const rangeSize = 65_536;
const blockSize = 2 ** 28;

function scene() {
  const root = mkdtempSync(join(tmpdir(), "dsec-ids-"));
  const dataDir = (name: string): string => {
    const path = join(root, name);
    mkdirSync(path, { recursive: true });
    return path;
  };
  return { root, dataDir, [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
}

test("take() never gives a range twice before it came back, and all ranges lie in the block", () => {
  using here = scene();
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant("take"), fc.nat(50)), { maxLength: 200 }), (steps) => {
      using block = claimIdBlock(here.root, here.dataDir("one"));
      const out: number[] = [];
      for (const step of steps) {
        if (step === "take") {
          const { base } = block.take();
          assert.ok(!out.includes(base));
          assert.equal(base % rangeSize, 0);
          assert.ok(base > block.base && base + rangeSize <= block.base + blockSize);
          out.push(base);
        } else if (out.length > 0) {
          const [base] = out.splice(Number(step) % out.length, 1);
          if (base !== undefined) block.giveBack(base);
        }
      }
    }),
  );
});

test("take() gives the range that came back longest ago last of all, and no_capacity when all are out", () => {
  using here = scene();
  using block = claimIdBlock(here.root, here.dataDir("one"));
  const first = block.take().base;
  const second = block.take().base;
  block.giveBack(second);
  block.giveBack(first);
  let last = 0;
  let given = 0;
  for (; given < blockSize / rangeSize - 3; given += 1) last = block.take().base;
  assert.ok(last !== first && last !== second);
  assert.equal(block.take().base, second);
  assert.equal(block.take().base, first);
  assert.throws(
    () => block.take(),
    (error) => isPlatformError(error) && error.code === "no_capacity",
  );
});

test("claimIdBlock() gives every data directory a block of its own, and the same one again", () => {
  using here = scene();
  const one = claimIdBlock(here.root, here.dataDir("one"));
  using two = claimIdBlock(here.root, here.dataDir("two"));
  assert.notEqual(one.base, two.base);
  assert.ok(one.base >= blockSize);
  // The process lives on: a claim is found by its directory.
  assert.equal(claimIdBlock(here.root, here.dataDir("one")).base, one.base);
  one[Symbol.dispose]();
  using three = claimIdBlock(here.root, here.dataDir("three"));
  assert.equal(three.base, one.base);
});

test("take() passes over the ranges of adopted sandboxes until they come back", () => {
  using here = scene();
  using block = claimIdBlock(here.root, here.dataDir("one"));
  const adopted = block.base + 2 * rangeSize;
  block.adopt(adopted);
  const bases = [block.take().base, block.take().base];
  assert.ok(!bases.includes(adopted));
  block.giveBack(adopted);
  const all = Array.from({ length: blockSize / rangeSize - 3 }, () => block.take().base);
  assert.ok(all.includes(adopted));
});
