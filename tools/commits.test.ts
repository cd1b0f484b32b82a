// Commit subjects read `area: imperative`, 72 characters at most.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { repositoryRoot } from "./repository.ts";

const lookBack = 50;

/** Subjects that landed without this check; history is not rewritten for them. */
const landed = new Set([
  "chronus/init: take the session's signal reset, count inits by pid in tests",
  "chronus/spawner: let U's helper finish beside the creation, split the peers",
  "chronus: test isolation, failures and crashes of the spawner on the kernel",
  "edge, tools: explain the large folders; leave test support out of dead code",
]);

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: repositoryRoot, encoding: "utf8" }).trim();
}

/** Subjects that are not `area: imperative`. Merge commits are git's own words. */
function findBadSubjects(subjects: readonly string[]): string[] {
  assert.ok(subjects.length > 0, "no commit was looked at");
  return subjects.filter(
    (subject) => !/^[a-z0-9][\w./, -]*: [a-z`"\d][^\n]*[^.\s]$/.test(subject) || subject.length > 72,
  );
}

test("the last commits' subjects follow the style", (context) => {
  if (git("rev-parse", "--is-shallow-repository") === "true") {
    context.skip("a shallow clone has no history to read");
    return;
  }
  const subjects = git("log", "--no-merges", `--max-count=${lookBack}`, "--format=%s").split("\n");
  assert.deepEqual(
    findBadSubjects(subjects).filter((subject) => !landed.has(subject)),
    [],
  );
});

test("findBadSubjects() refuses what is not `area: imperative`", () => {
  const bad = [
    "Fix bug",
    "edge:no space",
    "edge: Ends with a full stop.",
    `edge: ${"x".repeat(70)}`,
    "edge: Capital letter",
  ];
  assert.deepEqual(findBadSubjects(bad), bad);
  assert.deepEqual(
    findBadSubjects(["edge/host: bound crun's captured stderr", "control, edge: sign claims"]),
    [],
  );
  assert.throws(() => findBadSubjects([]), /no commit was looked at/);
});
