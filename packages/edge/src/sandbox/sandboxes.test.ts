import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exec, Sandbox } from "@dsec/contracts";
import { wait } from "@dsec/kit";
import { plainRequest, TestNode } from "./testing/test-node.ts";

const one = { project: "prone", admin: false };
const two = { project: "prtwo", admin: false };
const admin = { project: "prtwo", admin: true };
const never = new AbortController().signal;

function execRequest(argv: readonly string[], change: Partial<Exec> = {}): Exec {
  return {
    argv: [...argv],
    timeoutMs: 10_000,
    noNewPrivs: false,
    endTree: false,
    detached: false,
    outputBytesMax: 1_000,
    ...change,
  };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !condition(); i++) await wait(5, never);
  assert.ok(condition(), "it happens within 5 s");
}

test("a sandbox is created, runs a command, is stopped, and leaves nothing", async (context) => {
  const node = new TestNode(context);
  const { id, state } = await node.sandboxes.create(one, plainRequest, undefined);
  assert.equal(state, "running");
  const result = await node.sandboxes.live(one, id).commands.exec(execRequest(["echo", "hello"]), never);
  assert.equal(result.outcome.exitCode, 0);
  assert.deepEqual(result.stdout, { encoding: "utf8", data: "hello\n", truncated: false });
  const stopped = await node.sandboxes.remove(one, id);
  assert.deepEqual(node.host.held(), []);
  assert.equal(node.sandboxes.get(one, id).state, "stopped");
  assert.equal(stopped.id, id);
  assert.throws(() => node.sandboxes.live(one, id), { code: "gone" });
  assert.equal((await node.sandboxes.remove(one, id)).state, "stopped");
});

test("another project's sandbox answers like an unknown one, byte by byte; an administrator sees it", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const messageOf = (action: () => unknown): string => {
    try {
      action();
    } catch (error) {
      return (error as Error).message.replace(id, "ID").replace("sbaaaazz", "ID");
    }
    return "no error";
  };
  const unknown = messageOf(() => node.sandboxes.live(one, "sbaaaazz"));
  for (const action of ["get", "live", "commandsOf"] as const) {
    assert.equal(
      messageOf(() => node.sandboxes[action](two, id)),
      unknown,
    );
  }
  await assert.rejects(node.sandboxes.remove(two, id), { code: "not_found" });
  assert.equal(node.sandboxes.get(admin, id).id, id);
  assert.equal(node.sandboxes.list(two, { limit: 10 }).items.length, 0);
  assert.equal(node.sandboxes.list(admin, { limit: 10 }).items.length, 1);
});

test("one key makes one sandbox, also for calls at once and after a restart; another request is a conflict", async (context) => {
  const node = new TestNode(context);
  const made = await Promise.all([1, 2, 3].map(async () => node.sandboxes.create(one, plainRequest, "k")));
  assert.equal(new Set(made.map(({ id }) => id)).size, 1);
  const other = { ...plainRequest, memoryMib: 128 };
  await assert.rejects(node.sandboxes.create(one, other, "k"), { code: "conflict" });
  await node.restart();
  assert.equal((await node.sandboxes.create(one, plainRequest, "k")).id, made[0]?.id);
  assert.equal((await node.sandboxes.lookup(one, "k")).sandbox.id, made[0]?.id);
  assert.notEqual((await node.sandboxes.create(two, plainRequest, "k")).id, made[0]?.id);
  await assert.rejects(node.sandboxes.lookup(one, "other"), { code: "not_found" });
});

test("a failed creation is recorded, leaves nothing, and frees its key", async (context) => {
  const node = new TestNode(context);
  node.host.alwaysFail = new Set(["spawner.create"]);
  await assert.rejects(node.sandboxes.create(one, plainRequest, "k"), { code: "unavailable" });
  assert.deepEqual(node.host.held(), []);
  assert.equal(node.sandboxes.list(one, { limit: 10 }).items[0]?.state, "failed");
  node.host.alwaysFail = new Set();
  assert.equal((await node.sandboxes.create(one, plainRequest, "k")).state, "running");
});

test("an action runs once however often it is asked for", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const { commands } = node.sandboxes.live(one, id);
  const request = execRequest(["echo", "x"], { actionId: "a" });
  const results = await Promise.all([1, 2, 3].map(async () => commands.exec(request, never)));
  const again = await commands.exec(request, never);
  assert.deepEqual(node.host.initOf(id)?.executions, ["a"]);
  assert.equal(new Set([...results, again].map(({ command }) => command.commandId)).size, 1);
  assert.equal(again.command.replay, true);
  assert.deepEqual(
    [...results, again].map(({ stdout }) => stdout.data),
    ["x\n", "x\n", "x\n", "x\n"],
  );
  const other = execRequest(["echo", "y"], { actionId: "a" });
  await assert.rejects(commands.exec(other, never), { code: "conflict" });
});

test("a command that runs across a restart of the edge is attached to, not run again", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const { outputBytesMax: _unused, ...start } = execRequest(["hold"], { actionId: "a" });
  const command = await node.sandboxes.live(one, id).commands.start(start);
  const init = node.host.initOf(id);
  const report = await node.restart();
  assert.deepEqual(report, { adopted: 1, ended: 0, removed: 0 });
  const { commands } = node.sandboxes.live(one, id);
  assert.equal((await commands.start(start)).commandId, command.commandId);
  const outcome = commands.outcome(command.commandId);
  init?.endCommand(command.commandId, { exitCode: 7 });
  assert.equal((await outcome).exitCode, 7);
  assert.deepEqual(init?.executions, ["a"]);
});

test("a command that ended while the edge was away has its outcome before anything is served", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const { outputBytesMax: _unused, ...start } = execRequest(["hold"], { actionId: "a" });
  const { commandId } = await node.sandboxes.live(one, id).commands.start(start);
  const init = node.host.initOf(id);
  await node.restart(async () => init?.endCommand(commandId, { exitCode: 3 }));
  assert.equal(node.sandboxes.live(one, id).commands.get(commandId).outcome?.exitCode, 3);
  await until(() => init?.acknowledged.includes(commandId) === true);
});

test("the outcome of a command is unknown when its sandbox went while the edge was away", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const { outputBytesMax: _unused, ...start } = execRequest(["hold"], { actionId: "a" });
  const { commandId } = await node.sandboxes.live(one, id).commands.start(start);
  const report = await node.restart(async () => node.host.crash(id));
  assert.deepEqual(report, { adopted: 0, ended: 1, removed: 0 });
  const view = node.sandboxes.get(one, id);
  assert.deepEqual([view.state, view.end?.cause], ["failed", "agent_unreachable"]);
  assert.equal(node.sandboxes.commandsOf(one, id).get(commandId).outcome?.cause, "outcome_unknown");
  assert.deepEqual(node.host.held(), []);
});

test("a sandbox whose init ends is failed, its calls fail at once, its commands end with it", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const { commands } = node.sandboxes.live(one, id);
  const running = commands.exec(execRequest(["hold"]), never);
  await until(() => commands.list().length === 1);
  await node.host.crash(id);
  const { outcome } = await running;
  assert.deepEqual([outcome.cause, outcome.failure.fault], ["agent_unreachable", "infra"]);
  await until(() => node.sandboxes.get(one, id).state === "failed");
  assert.throws(() => node.sandboxes.live(one, id), { code: "agent_unreachable" });
  assert.deepEqual(node.host.held(), []);
});

test("a dropped connection is made again, and what ran goes on", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  const sandbox = node.sandboxes.live(one, id);
  const { outputBytesMax: _unused, ...start } = execRequest(["hold"], { actionId: "a" });
  const { commandId } = await sandbox.commands.start(start);
  node.host.initOf(id)?.peer.drop();
  await wait(50, never);
  const outcome = sandbox.commands.outcome(commandId);
  node.host.initOf(id)?.endCommand(commandId, { exitCode: 5 });
  assert.equal((await outcome).exitCode, 5);
  const result = await sandbox.commands.exec(execRequest(["exit", "4"]), never);
  assert.equal(result.outcome.exitCode, 4);
});

async function expired(node: TestNode, { id }: Sandbox): Promise<readonly unknown[]> {
  await until(() => node.sandboxes.get(one, id).endedAtMs !== null);
  const { state, end } = node.sandboxes.get(one, id);
  return [state, end?.cause, end?.fault];
}

test("an idle sandbox ends for its caller; with a detached command running for policy; a foreground command keeps it", async (context) => {
  const node = new TestNode(context);
  const request = { ...plainRequest, idleTimeoutMs: 200 };
  const [idle, detached, busy] = [
    await node.sandboxes.create(one, request, undefined),
    await node.sandboxes.create(one, request, undefined),
    await node.sandboxes.create(one, request, undefined),
  ];
  const { outputBytesMax: _unused, ...start } = execRequest(["hold"]);
  await node.sandboxes.live(one, detached.id).commands.start({ ...start, detached: true });
  await node.sandboxes.live(one, busy.id).commands.start(start);
  assert.equal(node.sandboxes.get(one, busy.id).idleExpiresAtMs, null);
  assert.deepEqual(await expired(node, idle), ["stopped", "idle_expired", "caller"]);
  assert.deepEqual(await expired(node, detached), ["stopped", "idle_expired", "policy"]);
  assert.equal(node.sandboxes.get(one, busy.id).state, "running");
});

test("a lifetime ends a sandbox, and can be extended", async (context) => {
  const node = new TestNode(context);
  const request = { ...plainRequest, maxLifetimeMs: 300 };
  const [short, extended] = [
    await node.sandboxes.create(one, request, undefined),
    await node.sandboxes.create(one, request, undefined),
  ];
  const view = await node.sandboxes.setLifetime(one, extended.id, { extendMs: 60_000 });
  assert.ok((view.lifetimeExpiresAtMs ?? 0) > Date.now() + 50_000);
  assert.deepEqual(await expired(node, short), ["stopped", "lifetime_expired", "caller"]);
  assert.equal(node.sandboxes.get(one, extended.id).state, "running");
});

test("creations beyond the node's number or memory get no_capacity with a time to come back", async (context) => {
  const node = new TestNode(context);
  for (let i = 0; i < 8; i++) await node.sandboxes.create(one, plainRequest, undefined);
  assert.equal(node.sandboxes.load.admitting, false);
  await assert.rejects(
    node.sandboxes.create(one, plainRequest, undefined),
    (error: { code?: string; retryAfterMs?: number }) => {
      return error.code === "no_capacity" && (error.retryAfterMs ?? 0) > 0;
    },
  );
});

test("recovery removes what no record explains and ends half-made sandboxes", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, "k");
  const report = await node.restart(async () => {
    const { Ledger } = await import("../ledger/ledger.ts");
    assert.ok(Ledger);
    node.host.directories.create(
      "sbaaaazzzzzzzzzzzzzzzzzzzz" as Sandbox["id"] & Parameters<typeof node.host.directories.create>[0],
    );
  });
  assert.deepEqual(report, { adopted: 1, ended: 0, removed: 1 });
  assert.equal(node.sandboxes.get(one, id).state, "running");
  assert.ok(node.host.held().every((entry) => !entry.includes("zzzz")));
});

test("stopAll() ends every sandbox and admits none", async (context) => {
  const node = new TestNode(context);
  const { id } = await node.sandboxes.create(one, plainRequest, undefined);
  await node.sandboxes.stopAll();
  assert.deepEqual(node.host.held(), []);
  assert.equal(node.sandboxes.get(one, id).end?.cause, "cancelled");
  await assert.rejects(node.sandboxes.create(one, plainRequest, undefined), { code: "no_capacity" });
});
