import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newId, runLoops } from "./loops.ts";
import { environmentOfSystem } from "./packages.ts";
import { makeRootFiles } from "./root-files.ts";

const env = environmentOfSystem();
const signal = AbortSignal.timeout(60_000);

test("runLoops() runs each operation once, under a name of its own, and measures it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "dsec-loops-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const load = { operations: 11, inFlight: 4 };
  const result = await runLoops(["mkdir", join(folder, newId)], env, load, signal);
  assert.equal(result.durationsMs.length, 11);
  assert.equal(result.failures, 0);
  assert.equal(readdirSync(folder).length, 11);
  assert.ok(result.durationsMs.every((duration) => duration > 0 && duration < 10_000));
});

test("runLoops() throws when every run failed", async () => {
  await assert.rejects(
    runLoops(["false"], env, { operations: 2, inFlight: 1 }, signal),
    /every run of false/,
  );
});

test("makeRootFiles() makes a tree in which `true` finds its libraries", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "dsec-root-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await makeRootFiles(folder, signal);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  assert.ok(files.includes("bin/true"));
  assert.ok(files.some((file) => file.endsWith("libc.so.6")));
});
