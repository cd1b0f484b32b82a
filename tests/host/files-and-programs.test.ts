// What the edge takes for granted of files and programs of this host.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ensureDefaultBase } from "@dsec/edge/default-base";
import { LayerStore } from "@dsec/edge/layer-store";
import { HostProcessError, runProcess, runProgram } from "@dsec/edge/process";
import { isSame, startTimeOf, whenGone } from "@dsec/edge/process-identity";
import { createUpper, removeUpper } from "@dsec/edge/upper";
import { missingPrograms } from "./programs.ts";

const notRoot = process.getuid?.() === 0 ? false : "needs root";
const signal = AbortSignal.timeout(120_000);

function scene() {
  const directory = mkdtempSync(join(tmpdir(), "dsec-host-"));
  return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

test("the upper belongs to the sandbox's root and is removed with all that it holds, however deep", {
  skip: notRoot,
}, async () => {
  using here = scene();
  const place = join(here.directory, "sandbox");
  mkdirSync(place);
  const { upper } = createUpper(place, 2 ** 28);
  assert.equal(statSync(upper).uid, 2 ** 28);
  assert.equal(statSync(upper).mode & 0o777, 0o755);
  const plant = `
import os, sys
os.chdir(sys.argv[1])
os.symlink("/etc", "link")
for _ in range(200):
    os.mkdir("deeper" * 8)
    os.chdir("deeper" * 8)
    os.chown(".", 2**28 + 1000, 2**28 + 1000)`;
  execFileSync("python3", ["-c", plant, upper]);
  await removeUpper(place);
  assert.ok(!existsSync(place));
  assert.ok(existsSync("/etc/passwd"));
});

test("runProcess() reports code, signal and bounded output each for itself", async () => {
  const script = "printf 0123456789; echo bad >&2; exit 7";
  const report = await runProcess(["sh", "-c", script], { signal, stdoutBytesMax: 4 });
  assert.deepEqual(report, { code: 7, signal: null, stdout: "0123", stderr: "bad\n" });
  const killed = await runProcess(["sh", "-c", "kill -9 $$"], { signal });
  assert.equal(killed.signal, "SIGKILL");
  assert.equal(killed.code, null);
  await assert.rejects(runProgram(["false"], { signal }), HostProcessError);
  await assert.rejects(runProcess(["/no/such/program"], { signal }), { code: "ENOENT" });
  assert.equal((await runProcess(["cat"], { signal, stdin: "in" })).stdout, "in");
});

test("runProcess() gives a program nothing of our environment", async () => {
  const { stdout } = await runProcess(["env"], { signal });
  assert.deepEqual(
    stdout
      .trim()
      .split("\n")
      .map((line) => line.split("=", 1)[0] ?? "")
      .toSorted(),
    ["LC_ALL", "PATH"],
  );
});

test("an aborted program is gone when runProcess() rejects with the reason", async () => {
  using here = scene();
  const file = join(here.directory, "pid");
  const controller = new AbortController();
  const running = runProcess(["sh", "-c", `echo $$ > ${file}; echo ready >&2; exec sleep 300`], {
    signal: controller.signal,
    onStderrLine: () => controller.abort(new Error("told to end")),
  });
  await assert.rejects(running, /told to end/);
  assert.equal(startTimeOf(Number(readFileSync(file, "utf8"))), undefined);
});

test("a process is known by pid and start time, and whenGone() sees its end", async () => {
  const startTime = startTimeOf(process.pid) ?? assert.fail();
  assert.ok(isSame(process.pid, startTime));
  assert.ok(!isSame(process.pid, startTime + 1));
  await assert.rejects(whenGone(process.pid, startTime, AbortSignal.timeout(50)), { name: "TimeoutError" });
  await whenGone(process.pid, startTime + 1, signal);
});

const missing = missingPrograms(["mmdebstrap", "unshare", "apt-get"], process.env["PATH"] ?? "");
const baseSkip = notRoot || (missing.length > 0 && `needs ${missing.join(", ")}`);

test("an interrupted build of the default base leaves no file, mount or process", {
  skip: baseSkip,
}, async () => {
  using here = scene();
  const store = new LayerStore(join(here.directory, "layers"));
  await store.open();
  const buildRoot = join(here.directory, "build");
  const controller = new AbortController();
  // The second line comes from the running program.
  let lines = 0;
  const progress = (): void => {
    lines += 1;
    if (lines === 2) controller.abort(new Error("told to end"));
  };
  await assert.rejects(ensureDefaultBase({ store, buildRoot }, progress, controller.signal), /told to end/);
  assert.deepEqual(readdirSync(buildRoot), []);
  assert.deepEqual(await store.list(), []);
  assert.ok(!readFileSync("/proc/self/mountinfo", "utf8").includes(here.directory));
  const left = readdirSync("/proc").filter(
    (pid) => /^\d+$/.test(pid) && commandLine(pid).includes(here.directory),
  );
  assert.deepEqual(left, []);
});

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It ended meanwhile.
    return "";
  }
}
