import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf } from "./check.ts";
import { unitTestFiles } from "./check-steps.ts";

const step = { name: "format", argv: ["biome"], seen: /Checked (\d+) files?/, static: true } as const;

test("failureOf() passes a step that looked at files", () => {
  assert.equal(failureOf(step, { exitCode: 0, output: "Checked 12 files in 3ms." }), undefined);
});

test("failureOf() fails a step that looked at nothing", () => {
  assert.equal(failureOf(step, { exitCode: 0, output: "Checked 0 files." }), "it looked at nothing");
  assert.equal(failureOf(step, { exitCode: 0, output: "" }), "it looked at nothing");
});

test("failureOf() fails a step that ended badly", () => {
  assert.equal(failureOf(step, { exitCode: 3, output: "Checked 12 files" }), "exit code 3");
});

test("unitTestFiles() finds this file", () => {
  assert.ok(unitTestFiles().includes("tools/check.test.ts"));
});
