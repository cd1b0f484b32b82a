// Situations with commands and streams that users of sandbox platforms met, each named after what must happen.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DsecClient, DsecError, type Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";
import { sized } from "../../acceptance/report.ts";

const skip = reasonToSkip();
const timeout = 300_000;
const mib = 1024 * 1024;
let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  if (skip !== false) return;
  platform = await startPlatform();
  sandbox = await platform.client.sandboxes.create({ memoryMib: 512 });
});
after(async () => {
  await sandbox?.stop();
  await platform?.[Symbol.asyncDispose]();
});

/** How many processes inside have this command line. */
async function countInside(words: string): Promise<number> {
  const { stdout } = await sandbox.exec(["ps", "-eo", "args"]);
  return stdout.split("\n").filter((line) => line === words).length;
}

test("a background child that keeps stdout open does not keep the call waiting", {
  skip,
  timeout,
}, async () => {
  const startedAt = performance.now();
  const result = await sandbox.exec("sleep 61 & echo done");
  assert.ok(performance.now() - startedAt < 10_000);
  assert.deepEqual([result.exitCode, result.stdout, result.outcome.leftRunning], [0, "done\n", true]);
  assert.equal(await countInside("sleep 61"), 1);
  await (await sandbox.command(result.commandId)).kill();
  assert.equal(await countInside("sleep 61"), 0);

  const ended = await sandbox.exec("sleep 62 & echo done", { endTree: true });
  assert.deepEqual([ended.exitCode, ended.stdout], [0, "done\n"]);
  assert.equal(await countInside("sleep 62"), 0);
});

test("a time limit ends descendants that changed their session", { skip, timeout }, async () => {
  const late = await sandbox.exec("setsid sleep 998 & sleep 999", { timeoutMs: 500 });
  assert.equal(late.outcome.cause, "timeout");
  assert.deepEqual([await countInside("sleep 998"), await countInside("sleep 999")], [0, 0]);

  const command = await sandbox.start("setsid sleep 998 & sleep 999");
  while ((await countInside("sleep 998")) === 0) await delay(20);
  await command.kill();
  await command.outcome();
  assert.deepEqual([await countInside("sleep 998"), await countInside("sleep 999")], [0, 0]);
});

test("output before a time limit is kept, standard output and error apart", { skip, timeout }, async () => {
  const late = await sandbox.exec("echo out; echo err >&2; sleep 60", { timeoutMs: 700 });
  assert.deepEqual([late.stdout, late.stderr, late.exitCode], ["out\n", "err\n", null]);
  assert.deepEqual([late.outcome.cause, late.outcome.failure.fault], ["timeout", "policy"]);
});

test("output beyond the cap keeps head and tail, counts the rest, and costs the node little", {
  skip,
  timeout,
}, async () => {
  const bytes = 200 * mib;
  const [edge] = platform.state.edges;
  assert.ok(edge !== undefined);
  // The heap of a process that has just started grows with its first work, whatever that is: only what 200 MiB cost beyond 17 counts.
  const warming = await sandbox.start(`yes | head -c ${17 * mib}`);
  for await (const _chunk of warming.stdout);
  const before = residentMib(edge.pid);
  const command = await sandbox.start(`echo first; yes | head -c ${bytes - 11}; echo last; `);
  const outcome = await command.outcome();
  assert.equal(outcome.exitCode, 0);
  assert.equal(outcome.stdout.bytes, bytes);
  assert.ok(outcome.stdout.dropped > bytes - 17 * mib, `${outcome.stdout.dropped} bytes dropped`);
  assert.ok(outcome.endedAtMs - outcome.startedAtMs < 30_000, "the command was slowed to a halt");
  let kept = "";
  for await (const chunk of command.stdout) kept += new TextDecoder().decode(chunk);
  assert.ok(kept.startsWith("first\n") && kept.endsWith("last\n"));
  assert.equal(kept.length + command.stdout.droppedBytes, bytes);
  const grown = residentMib(edge.pid) - before;
  assert.ok(grown < 64, `the edge grew by ${grown} MiB`);
  const onDisk = bytesBelow(
    join(platform.places.dataDir, "edge", edge.nodeId, "sandboxes", sandbox.id, "output"),
  );
  assert.ok(onDisk < 64 * mib, `${onDisk} bytes of output on disk`);
});

test("one write of 10 MiB arrives whole at a slow reader", { skip, timeout }, async () => {
  const text = [
    "import hashlib, os, sys",
    "data = os.urandom(10 << 20)",
    "sys.stderr.write(hashlib.sha256(data).hexdigest())",
    "sys.stdout.buffer.write(data)",
  ].join("\n");
  const command = await sandbox.start(["python3", "-c", text]);
  const hash = createHash("sha256");
  let sleeps = 0;
  for await (const chunk of command.stdout) {
    hash.update(chunk);
    sleeps += 1;
    if (sleeps <= 40) await delay(50);
  }
  assert.equal(hash.digest("hex"), await command.stderr.text());
  assert.equal((await command.outcome()).exitCode, 0);
});

test("a command outlives its client; another one reads every line from the start, then the exit code", {
  skip,
  timeout,
}, async () => {
  const lines = sized({ short: 60, full: 900, soak: 900 });
  const first = new DsecClient({ url: platform.url, key: platform.key });
  const own = await first.sandboxes.get(sandbox.id);
  const command = await own.start(`for i in $(seq ${lines}); do echo line $i; sleep 0.1; done; exit 7`);
  const started = await command.stdout[Symbol.asyncIterator]().next();
  assert.equal(started.done, false);
  first.close();

  await delay(lines * 70);
  const again = await sandbox.command(command.id);
  const output = await again.stdout.text();
  assert.deepEqual(
    output.trimEnd().split("\n"),
    Array.from({ length: lines }, (_, index) => `line ${index + 1}`),
  );
  assert.equal((await again.outcome()).exitCode, 7);
  const late = await sandbox.command(command.id);
  assert.equal(await late.stdout.text(), output);
});

test("a dropped connection and its retry under one action id are one execution", {
  skip,
  timeout,
}, async () => {
  const actionId = `retry-${randomUUID()}`;
  const body = { shell: "echo once >>/root/effects; sleep 1; echo result", actionId };
  const abort = new AbortController();
  const lost = fetch(`${platform.url}/v1/sandboxes/${sandbox.id}/exec`, {
    method: "POST",
    headers: { authorization: `Bearer ${platform.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: abort.signal,
  });
  const aborted = assert.rejects(lost, { name: "AbortError" });
  while ((await sandbox.exec("cat /root/effects 2>/dev/null")).stdout === "") await delay(20);
  abort.abort();
  await aborted;
  const retried = await sandbox.exec(body.shell, { actionId });
  assert.equal(retried.stdout, "result\n");
  assert.equal((await sandbox.exec("cat /root/effects")).stdout, "once\n");
});

test("a command that reads gets end of file at once when nothing was given", { skip, timeout }, async () => {
  const startedAt = performance.now();
  assert.deepEqual([(await sandbox.exec("cat")).exitCode, (await sandbox.exec(["cat"])).stdout], [0, ""]);
  const python = await sandbox.exec(["python3", "-c", "input()"]);
  assert.match(python.stderr, /EOFError/);
  assert.ok(performance.now() - startedAt < 10_000);
});

test("a command of 300 KB runs, or is refused with a reason", { skip, timeout }, async () => {
  const text = `echo ${"x".repeat(300_000)} | wc -c`;
  try {
    assert.equal((await sandbox.exec(text)).stdout, "300001\n");
  } catch (error) {
    assert.ok(
      error instanceof DsecError && ["invalid_request", "payload_too_large"].includes(error.code),
      String(error),
    );
    assert.match(error.message, /bytes|long|size/i);
  }
  const whole = await sandbox.exec("bash -s | wc -c", { stdin: text.replace(" | wc -c", "") });
  assert.equal(whole.stdout, "300001\n");
});

function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

function bytesBelow(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}
