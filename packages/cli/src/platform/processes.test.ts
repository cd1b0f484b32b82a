import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { endProcess, isRunning, startDaemon } from "./processes.ts";
import { userNamed } from "./unprivileged.ts";

async function daemon(t: TestContext, script: string, readyMsMax = 10_000) {
  const directory = await mkdtemp(join(tmpdir(), "dsec-daemon-test-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const lines: string[] = [];
  const argv = [process.execPath, "-e", script] as const;
  const options = { name: "daemon", argv, logFile: join(directory, "log"), readyMsMax, graceMs: 2_000 };
  return { lines, options: { ...options, onProgress: (line: string) => void lines.push(line) } };
}

const signal = new AbortController().signal;

test("startDaemon() passes progress on, answers the ready line, and the daemon lives on", async (t) => {
  const script = `console.log('{"progress":"half"}'); console.log('{"url":"x"}'); setInterval(() => {}, 1e6)`;
  const { lines, options } = await daemon(t, script);
  const started = await startDaemon(options, signal);
  assert.deepEqual([started.ready, lines], [{ url: "x" }, ["daemon: half"]]);
  assert.equal(isRunning(started), true);
  assert.equal(isRunning({ ...started, startTime: started.startTime + 1 }), false);
  await endProcess(started, 5_000);
  assert.equal(isRunning(started), false);
  await endProcess(started, 5_000);
});

test("startDaemon() says what the log ends with when the daemon ends first", async (t) => {
  const { options } = await daemon(t, "console.error('no port'); process.exit(3)");
  await assert.rejects(startDaemon(options, signal), { code: "unavailable", message: /with 3\nno port$/ });
});

test("startDaemon() gives up a daemon that is not ready in time, or speaks otherwise", async (t) => {
  const silent = await daemon(t, "setInterval(() => {}, 1e6)", 100);
  await assert.rejects(startDaemon(silent.options, signal), /not ready after 100 ms/);
  const chatty = await daemon(t, "console.log('hello'); setInterval(() => {}, 1e6)");
  await assert.rejects(startDaemon(chatty.options, signal), /with the line "hello"/);
});

test("endProcess() kills what does not end by itself", async (t) => {
  const { options } = await daemon(
    t,
    "process.on('SIGTERM', () => {}); console.log('{}'); setInterval(() => {}, 1e6)",
  );
  const started = await startDaemon(options, signal);
  await endProcess(started, 100);
  assert.equal(isRunning(started), false);
});

test("userNamed() reads passwd lines and nothing else", () => {
  const passwd = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:n:/:/bin/false\nbad:x:a:b\n";
  assert.deepEqual(userNamed(passwd, "nobody"), { uid: 65_534, gid: 65_533 });
  assert.equal(userNamed(passwd, "bad"), undefined);
  assert.equal(userNamed(passwd, "none"), undefined);
});
