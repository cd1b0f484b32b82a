import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunReport } from "./attempt.ts";
import { memoryAvailableOf } from "./memory.ts";
import { planRuns } from "./plan.ts";
import { describeReports, isSuccess, percentilesOf, summarizeJob } from "./summary.ts";
import type { Task } from "./task-folder.ts";

function taskNamed(name: string, attempts: readonly string[]): Task {
  return {
    name,
    language: "shell",
    testCommand: "true",
    timeLimitMs: 1_000,
    filesDirectory: "/",
    commit: { authorName: "a", authorEmail: "a@example.invalid", date: new Date(0), message: "m" },
    attempts: attempts.map((attempt) => ({ name: attempt, script: "", expected: "pass" })),
  };
}

function reportOf(index: number, verdict: RunReport["verdict"]): RunReport {
  const [run] = planRuns([taskNamed(`task-${index % 2}`, ["a"])], undefined);
  assert.ok(run !== undefined);
  return { run: { ...run, index }, verdict, reason: "exit code 1", createMs: index, execMs: undefined };
}

test("planRuns() cuts attempts off or repeats them", () => {
  const tasks = [taskNamed("one", ["a", "b", "c"]), taskNamed("two", ["d"])];
  const names = (count: number | undefined): string[] =>
    planRuns(tasks, count).map((run) => `${run.index} ${run.task.name}/${run.attempt.name}`);
  assert.deepEqual(names(undefined), ["0 one/a", "1 one/b", "2 one/c", "3 two/d"]);
  assert.deepEqual(names(2), ["0 one/a", "1 one/b", "2 two/d", "3 two/d"]);
});

test("summarizeJob() counts what is as planned and rates each task", () => {
  const reports = [reportOf(0, "pass"), reportOf(1, "fail"), reportOf(2, "pass"), reportOf(3, undefined)];
  const summary = summarizeJob(reports, { memoryMibPerSandbox: 1.2345, seconds: 2.3456, leaks: 0 });
  assert.deepEqual(summary, {
    sandboxes: 4,
    asPlanned: 2,
    passRateByTask: { "task-0": 1, "task-1": 0 },
    createMs: { p50: 1, p99: 3 },
    execMs: { p50: null, p99: null },
    memoryMibPerSandbox: 1.23,
    seconds: 2.35,
    leaks: 0,
  });
  assert.equal(isSuccess(summary), false);
  assert.match(describeReports(reports), /task-1 .* fail +NOT AS PLANNED: exit code 1\n/);
});

test("isSuccess() wants every verdict as planned, no leak, and at least one sandbox", () => {
  const measured = { memoryMibPerSandbox: null, seconds: 1, leaks: 0 };
  assert.equal(isSuccess(summarizeJob([reportOf(0, "pass")], measured)), true);
  assert.equal(isSuccess(summarizeJob([reportOf(0, "pass")], { ...measured, leaks: 1 })), false);
  assert.equal(isSuccess(summarizeJob([], measured)), false);
});

test("percentilesOf() takes the nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.deepEqual(percentilesOf(hundred), { p50: 50, p99: 99 });
  assert.deepEqual(percentilesOf([7]), { p50: 7, p99: 7 });
  assert.deepEqual(percentilesOf([]), { p50: null, p99: null });
});

test("memoryAvailableOf() reads MiB and refuses other text", () => {
  assert.equal(memoryAvailableOf("MemTotal: 1 kB\nMemAvailable:    2048 kB\n"), 2);
  assert.throws(() => memoryAvailableOf("MemTotal: 1 kB\n"), /MemAvailable/);
});
