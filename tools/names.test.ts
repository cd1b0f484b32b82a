// Files and folders are kebab-case and named after the main thing in them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readSources } from "./repository.ts";

const banned = new Set([
  "utils",
  "util",
  "helpers",
  "helper",
  "common",
  "manager",
  "misc",
  "data",
  "shared",
  "stuff",
]);
const kebab = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Every path with a bad word in it, with the reason. Rust and Python name their files by their own customs. */
function findBadNames(paths: readonly string[]): string[] {
  assert.ok(paths.length > 0, "no file was looked at");
  return paths.flatMap((path) =>
    path.split("/").flatMap((part) => {
      const stem = part.replace(/(?:\.property)?(?:\.test)?(?:\.d)?\.[a-z]+$/, "");
      if (!kebab.test(stem)) return [`${path}: "${part}" is not kebab-case`];
      return stem.split("-").some((word) => banned.has(word)) ? [`${path}: "${part}" says nothing`] : [];
    }),
  );
}

test("the repository's names follow the style", () => {
  assert.deepEqual(
    findBadNames([...readSources(/^(?:packages|tests|bench|tools)\/.*\.(?:ts|mjs)$/).keys()]),
    [],
  );
});

for (const path of [
  "packages/kit/src/utils.ts",
  "packages/sdk/src/SandBox.ts",
  "tools/job-manager.ts",
  "tests/my_test.test.ts",
]) {
  test(`findBadNames() refuses ${path}`, () => assert.equal(findBadNames([path]).length, 1));
}

test("findBadNames() lets ordinary names pass", () => {
  assert.deepEqual(
    findBadNames(["packages/edge/src/host/cgroup-v1.property.test.ts", "packages/e2b/src/index.ts"]),
    [],
  );
});

test("findBadNames() fails when it saw nothing", () => {
  assert.throws(() => findBadNames([]), /no file was looked at/);
});
