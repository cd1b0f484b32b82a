// The tasks that the main job runs, without the platform: every scripted attempt in a plain temporary directory, and the verdict of the test command against the plan.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { loadTasks, type Task } from "@dsec/cli/task-folder";
import { makeTaskRepository } from "@dsec/cli/task-repository";
import { missingPrograms } from "./programs.ts";

const examples = join(import.meta.dirname, "../../examples");
const signal = AbortSignal.timeout(600_000);
const defaultTasks = await loadTasks(join(examples, "tasks"), signal);
const extraTasks = await loadTasks(join(examples, "extra-task"), signal);

// Debian's tools first, the pinned Node where there is no other.
const path = ["/usr/local/bin", "/usr/bin", "/bin", dirname(process.execPath)].join(delimiter);

const programsByLanguage: Readonly<Record<string, readonly string[]>> = {
  python: ["python3"],
  javascript: ["node"],
  c: ["gcc", "make"],
  "c++": ["g++", "make"],
  shell: ["make", "awk"],
};

test("the default folder is four tasks in at least three languages with eight attempts each", () => {
  assert.equal(defaultTasks.length, 4);
  assert.ok(new Set(defaultTasks.map((task) => task.language)).size >= 3);
  for (const task of defaultTasks) assert.equal(task.attempts.length, 8, task.name);
});

test("the extra task is in a language that the default folder does not have", () => {
  for (const { language } of extraTasks) {
    assert.ok(!defaultTasks.some((task) => task.language === language));
  }
});

for (const task of [...defaultTasks, ...extraTasks]) {
  const missing = missingPrograms(
    ["bash", "git", "patch", "python3", "sha256sum", "timeout", ...(programsByLanguage[task.language] ?? [])],
    path,
  );
  const skip = missing.length > 0 && `needs ${missing.join(", ")}`;

  describe(`task ${task.name}`, { concurrency: 3, skip }, () => {
    test("fails as long as nobody has touched it", async () => {
      await using place = await prepare(task);
      const { exitCode, output } = await runTest(task, place.directory);
      assert.notEqual(exitCode, 0, output);
    });

    for (const attempt of task.attempts) {
      test(`attempt ${attempt.name} is a ${attempt.expected}`, async () => {
        await using place = await prepare(task);
        const script = join(dirname(place.directory), "attempt.sh");
        await writeFile(script, attempt.script);
        const attempted = await runBounded(["bash", script], task, place.directory);
        const tested = await runTest(task, place.directory);
        const verdict = tested.exitCode === 0 ? "pass" : "fail";
        assert.equal(verdict, attempt.expected, `${attempted.output}\n--- test command\n${tested.output}`);
      });
    }
  });
}

interface Report {
  readonly exitCode: number;
  /** Standard output and error together, the last 4,000 characters. */
  readonly output: string;
}

const prepare = (task: Task) => makeTaskRepository(task, signal);

const runTest = (task: Task, directory: string) =>
  runBounded(["sh", "-c", task.testCommand], task, directory);

/** Runs one command of a task under its time limit and ends all that it leaves in its process group. */
async function runBounded(argv: readonly string[], task: Task, directory: string): Promise<Report> {
  const scratch = await mkdtemp(join(tmpdir(), "dsec-attempt-"));
  const outputPath = join(scratch, "output");
  const output = openSync(outputPath, "w");
  const limit = String(task.timeLimitMs / 1000);
  const child = spawn("timeout", ["--kill-after=1", limit, ...argv], {
    cwd: directory,
    env: { PATH: path, HOME: scratch, LANG: "C.UTF-8" },
    stdio: ["ignore", output, output],
    detached: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once("error", reject);
  child.once("exit", (code, killedBy) => resolve(code ?? (killedBy === null ? 0 : 128)));
  try {
    const exitCode = await promise;
    return { exitCode, output: readFileSync(outputPath, "utf8").slice(-4_000) };
  } finally {
    closeSync(output);
    endGroups(child.pid);
    await rm(scratch, { recursive: true, force: true });
  }
}

/** `timeout` makes a process group of its own; what an attempt left behind is in it. */
function endGroups(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, "SIGKILL");
  } catch (error) {
    // ESRCH: nothing was left.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
