import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  if (skip !== false) return;
  platform = await startPlatform();
  sandbox = await platform.client.sandboxes.create();
});
after(async () => {
  await sandbox?.stop();
  await platform?.[Symbol.asyncDispose]();
});

test("exec() of argv and shell: exit code, both outputs, directory, environment, user, input", {
  skip,
}, async () => {
  const argv = await sandbox.exec(["/bin/sh", "-c", 'echo "$1"; echo err >&2; exit 3', "sh", "a b"]);
  assert.deepEqual([argv.exitCode, argv.ok, argv.stdout, argv.stderr], [3, false, "a b\n", "err\n"]);
  assert.deepEqual(argv.outcome.failure, {
    fault: "none",
    cause: "exit",
    maskable: false,
    agentCouldCause: true,
  });
  const shell = await sandbox.exec("pwd; echo $X; id -un; cat", {
    cwd: "/usr",
    env: { X: "1" },
    user: "agent",
    stdin: "typed",
  });
  assert.equal(shell.stdout, "/usr\n1\nagent\ntyped", shell.stderr);
  const bytes = await sandbox.exec("cat", { stdin: Uint8Array.of(0, 255, 10) });
  assert.deepEqual([...bytes.stdoutBytes], [0, 255, 10]);
});

test("a command that cannot start, a signal and a time limit are told apart", { skip }, async () => {
  const missing = await sandbox.exec(["/no/such/program"]);
  assert.equal(missing.outcome.cause, "start_failed");
  const killed = await sandbox.exec("kill -9 $$");
  assert.deepEqual([killed.exitCode, killed.outcome.signal, killed.outcome.cause], [null, 9, "signal"]);
  const startedAt = performance.now();
  const late = await sandbox.exec("sleep 60 & sleep 61", { timeoutMs: 300 });
  assert.ok(performance.now() - startedAt < 5_000);
  assert.deepEqual(
    [late.exitCode, late.outcome.cause, late.outcome.failure.fault, late.outcome.failure.maskable],
    [null, "timeout", "policy", false],
  );
  const left = await sandbox.exec("pgrep -c sleep");
  assert.equal(left.stdout, "0\n", "the whole tree ended");
});

test("outputBytesMax cuts what comes back and says so", { skip }, async () => {
  const result = await sandbox.exec("head -c 5000 /dev/zero | tr '\\0' x", { outputBytesMax: 1_000 });
  assert.deepEqual([result.truncated, result.outcome.stdout.bytes], [true, 5_000]);
  assert.ok(result.stdout.length <= 1_000);
});

test("the same actionId answers the same and runs once", { skip }, async () => {
  const run = async () => await sandbox.exec("echo x >>/tmp/once; wc -l </tmp/once", { actionId: "once-1" });
  const [first, second] = [await run(), await run()];
  assert.deepEqual([first.stdout, second.stdout], ["1\n", "1\n"]);
  assert.equal(first.commandId, second.commandId);
  assert.equal((await sandbox.exec("wc -l </tmp/once")).stdout, "1\n");
});

test("start() streams output while the command runs, and late readers get all of it", { skip }, async () => {
  const command = await sandbox.start(
    "echo one; read -r x </tmp/fifo; echo two $x; echo err >&2; exit 4",
    {},
  );
  await sandbox.exec("rm -f /tmp/fifo; mkfifo /tmp/fifo");
  const again = await sandbox.start("echo one; read -r x </tmp/fifo; echo two $x; echo err >&2; exit 4");
  const iterator = again.stdout[Symbol.asyncIterator]();
  const first = await iterator.next();
  assert.equal(new TextDecoder().decode(first.value as Uint8Array), "one\n");
  await sandbox.exec("echo go >/tmp/fifo");
  const rest = await iterator.next();
  assert.equal(new TextDecoder().decode(rest.value as Uint8Array), "two go\n");
  assert.equal((await again.outcome()).exitCode, 4);
  assert.equal(await again.stderr.text(), "err\n");
  const late = await sandbox.command(again.id);
  assert.equal(await late.stdout.text(), "one\ntwo go\n");
  await command.outcome();
});

test("large output arrives whole and in order under credit", { skip }, async () => {
  const command = await sandbox.start("seq 1 500000");
  const hash = { lines: 0, text: "" };
  for await (const bytes of command.stdout) {
    hash.text += new TextDecoder().decode(bytes);
  }
  const lines = hash.text.trimEnd().split("\n");
  assert.equal(lines.length, 500_000);
  assert.ok(lines.every((line, index) => line === String(index + 1)));
  assert.equal(command.stdout.droppedBytes, 0);
});

test("signal() reaches the command and kill() all that it left", { skip }, async () => {
  const trapped = await sandbox.start(
    "trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.05; done",
  );
  const iterator = trapped.stdout[Symbol.asyncIterator]();
  await iterator.next();
  await trapped.signal(10);
  assert.equal((await trapped.outcome()).exitCode, 7);
  const tree = await sandbox.start("sleep 600 & sleep 601");
  await tree.kill();
  const outcome = await tree.outcome();
  assert.deepEqual([outcome.exitCode, outcome.signal], [null, 9]);
  assert.equal((await sandbox.exec("pgrep -c sleep")).stdout, "0\n");
});

test("64 commands at once come over one connection each with its own end", { skip }, async () => {
  const commands = await Promise.all(
    Array.from(
      { length: 64 },
      async (_, number) => await sandbox.start(`echo ${number}; exit ${number % 8}`),
    ),
  );
  const ends = await Promise.all(
    commands.map(async (command) => [(await command.outcome()).exitCode, await command.stdout.text()]),
  );
  assert.deepEqual(
    ends,
    Array.from({ length: 64 }, (_, number) => [number % 8, `${number}\n`]),
  );
});
