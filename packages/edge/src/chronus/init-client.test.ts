import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeInit } from "./fakes/fake-init.ts";
import { type ExecRequest, InitClient, type OutputHandlers } from "./init-client.ts";
import { InitFiles } from "./init-files.ts";
import type { NativeOutcome } from "./operations.ts";

const sandboxId = "sbaaaabbbbbbbbbbbbbbbbbbbb";

function request(actionId: string, argv: readonly string[]): ExecRequest {
  return {
    actionId,
    argv,
    cwd: "/",
    env: {},
    user: "root",
    stdin: false,
    timeoutMs: 1_000,
    noNewPrivs: false,
    endTree: false,
  };
}

async function connected(
  context: TestContext,
  ended: NativeOutcome[] = [],
): Promise<{ init: FakeInit; client: InitClient }> {
  const directory = mkdtempSync(join(tmpdir(), "dsec-init-"));
  const socketPath = join(directory, "i.sock");
  const init = await FakeInit.listen(socketPath, sandboxId);
  const client = await InitClient.connect(
    { socketPath, sandboxId },
    { commandEnded: (outcome) => ended.push(outcome), closed: () => undefined },
    AbortSignal.timeout(5_000),
  );
  context.after(async () => {
    client.close();
    await init[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  return { init, client };
}

function collect(): { readonly handlers: OutputHandlers; text: () => string } {
  const chunks: Buffer[] = [];
  return {
    handlers: { output: (_stream, bytes) => chunks.push(Buffer.from(bytes)), gap: () => undefined },
    text: () => Buffer.concat(chunks).toString(),
  };
}

test("exec() gives output and outcome, and the event carries the same outcome", async (context) => {
  const ended: NativeOutcome[] = [];
  const { client } = await connected(context, ended);
  const output = collect();
  const command = client.exec(request("a1", ["echo", "hello"]), output.handlers);
  const { commandId, replay } = await command.accepted;
  const outcome = await command.outcome;
  assert.equal(replay, false);
  assert.equal(outcome.exitCode, 0);
  assert.equal(output.text(), "hello\n");
  assert.deepEqual(ended, [outcome]);
  assert.equal(outcome.commandId, commandId);
});

test("exec() with a known actionId attaches and starts nothing", async (context) => {
  const { init, client } = await connected(context);
  const first = client.exec(request("a1", ["echo", "x"]), collect().handlers);
  const second = client.exec(request("a1", ["echo", "x"]), collect().handlers);
  assert.deepEqual((await second.accepted).replay, true);
  assert.equal((await first.accepted).commandId, (await second.accepted).commandId);
  assert.deepEqual(init.executions, ["a1"]);
});

test("exec() sends long argv and environment as data", async (context) => {
  const { client } = await connected(context);
  const output = collect();
  const text = "y".repeat(200_000);
  await client.exec(request("a1", ["echo", text]), output.handlers).outcome;
  assert.equal(output.text().length, text.length + 1);
});

test("detach() leaves the command running and signal() ends it", async (context) => {
  const { client } = await connected(context);
  const command = client.exec(request("a1", ["hold"]), collect().handlers);
  const { commandId } = await command.accepted;
  command.detach();
  await assert.rejects(command.outcome, /Detached/);
  assert.equal((await client.commands())[0]?.running, true);
  await client.signal(commandId, 9, true);
  const [listed] = await client.commands();
  assert.equal(listed?.outcome?.cause, "killed");
});

test("connect() refuses the init of another sandbox", async (context) => {
  const directory = mkdtempSync(join(tmpdir(), "dsec-init-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const socketPath = join(directory, "i.sock");
  await using _init = await FakeInit.listen(socketPath, "sbaaaacccccccccccccccccccc");
  const handlers = { commandEnded: () => undefined, closed: () => undefined };
  await assert.rejects(
    InitClient.connect({ socketPath, sandboxId }, handlers, AbortSignal.timeout(5_000)),
    /not the init/,
  );
});

test("read() gives stat and content, and an error for what is not there", async (context) => {
  const { client } = await connected(context);
  const files = new InitFiles(client.connection);
  const download = await files.read({ path: "/etc/passwd", user: "root", offset: 0, length: null });
  const chunks: Buffer[] = [];
  for await (const chunk of download.chunks) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).length, download.stat.sizeBytes);
  await assert.rejects(files.read({ path: "/none", user: "root", offset: 0, length: null }), /No such file/);
});
