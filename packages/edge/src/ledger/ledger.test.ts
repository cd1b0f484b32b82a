import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { failureOf, limits, type NodeId, newSandboxId, type Outcome, type SandboxId } from "@dsec/contracts";
import { Ledger } from "./ledger.ts";
import type { SandboxRecord } from "./records.ts";

const node = "aaaa" as NodeId;

function record(change: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: newSandboxId(node),
    project: "prone",
    state: "creating",
    spec: {
      backend: "container",
      environment: { base: "default", toolkits: [] },
      layers: [],
      cpuCores: 1,
      memoryMib: 64,
      diskMib: 64,
      pidsMax: 64,
      user: "root",
      env: { A: "b" },
      labels: {},
      job: null,
    },
    pid: null,
    startTime: null,
    idBase: null,
    idleTimeoutMs: 1_000,
    createdAtMs: 1_000,
    lifetimeExpiresAtMs: null,
    endedAtMs: null,
    end: null,
    message: null,
    ...change,
  };
}

const outcome: Outcome = {
  exitCode: 0,
  signal: null,
  cause: "exit",
  failure: failureOf("exit"),
  message: null,
  startedAtMs: 1,
  endedAtMs: 2,
  cpuMs: 1,
  stdout: { bytes: 0, dropped: 0 },
  stderr: { bytes: 0, dropped: 0 },
  leftRunning: false,
};

const everything = {
  project: undefined,
  state: undefined,
  job: undefined,
  labels: [],
  after: undefined,
  limit: 100,
};

test("a record comes back as it was written, also by the next process", async (context) => {
  const directory = mkdtempSync(join(tmpdir(), "dsec-ledger-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "ledger.sqlite");
  const written = record();
  {
    using ledger = new Ledger(path);
    await ledger.addSandbox(written, undefined);
    await ledger.updateSandbox(written.id, {
      state: "failed",
      pid: 7,
      end: failureOf("internal"),
      endedAtMs: 9,
    });
  }
  using again = new Ledger(path);
  assert.deepEqual(again.sandbox(written.id), {
    ...written,
    state: "failed",
    pid: 7,
    end: failureOf("internal"),
    endedAtMs: 9,
  });
  assert.deepEqual(again.unendedSandboxes(), []);
});

test("a key finds its sandbox for 24 h, in its own project alone", async () => {
  using ledger = new Ledger(":memory:");
  const made = record();
  await ledger.addSandbox(made, { key: "k", requestDigest: "d" });
  assert.deepEqual(ledger.findIdempotency("prone", "k", 2_000), { sandboxId: made.id, requestDigest: "d" });
  assert.equal(ledger.findIdempotency("prtwo", "k", 2_000), undefined);
  assert.equal(ledger.findIdempotency("prone", "k", 1_000 + limits.idempotencyMs), undefined);
  await ledger.prune(1_001 + limits.idempotencyMs);
  assert.equal(ledger.findIdempotency("prone", "k", 2_000), undefined);
});

test("lists are in order of id, filtered, and go on after a cursor", async () => {
  using ledger = new Ledger(":memory:");
  const base = record().spec;
  const all = [
    record({ spec: { ...base, labels: { "a/b.c": "1" } } }),
    record({ spec: { ...base, job: "j" } }),
    record({ project: "prtwo" }),
  ];
  for (const each of all) await ledger.addSandbox(each, undefined);
  const ids = all.map((each) => each.id).toSorted();
  const list = (filter: object): SandboxId[] =>
    ledger.listSandboxes({ ...everything, ...filter }).map((each) => each.id);
  assert.deepEqual(list({}), ids);
  assert.deepEqual(list({ after: ids[0] }), ids.slice(1));
  assert.deepEqual(list({ limit: 1 }), ids.slice(0, 1));
  assert.deepEqual(list({ labels: [["a/b.c", "1"]] }), [all[0]?.id]);
  assert.deepEqual(list({ labels: [["a/b.c", "2"]] }), []);
  assert.deepEqual(list({ job: "j" }), [all[1]?.id]);
  assert.deepEqual(list({ project: "prtwo" }), [all[2]?.id]);
  assert.deepEqual(list({ state: "running" }), []);
});

test("an action is unique in its sandbox, and its outcome is written once", async () => {
  using ledger = new Ledger(":memory:");
  const { id } = record();
  const intent = { sandboxId: id, actionId: "a", requestDigest: "d", detached: false, startedAtMs: 5 };
  await ledger.commands.addIntent(intent);
  await assert.rejects(ledger.commands.addIntent(intent), { code: "unavailable" });
  await ledger.commands.setCommandId(id, "a", "c000000000001");
  assert.equal(ledger.commands.open(id).length, 1);
  const command = { actionId: "a", commandId: "c000000000001" };
  await ledger.commands.setOutcome(id, command, outcome);
  await ledger.commands.setOutcome(id, command, { ...outcome, exitCode: 1 });
  assert.equal(ledger.commands.byAction(id, "a")?.outcome?.exitCode, 0);
  assert.equal(ledger.commands.byId(id, "c000000000001")?.actionId, "a");
  assert.deepEqual(ledger.commands.open(id), []);
});

test("trim() keeps the last 1,024 ended commands and every open one", async () => {
  using ledger = new Ledger(":memory:");
  const { id } = record();
  const writes: Promise<void>[] = [];
  for (let i = 0; i < 1_030; i++) {
    const actionId = `a${i}`;
    writes.push(
      ledger.commands.addIntent({
        sandboxId: id,
        actionId,
        requestDigest: "d",
        detached: false,
        startedAtMs: i,
      }),
    );
    if (i > 0) writes.push(ledger.commands.setOutcome(id, { actionId, commandId: null }, outcome));
  }
  await Promise.all(writes);
  await ledger.commands.trim(id);
  assert.equal(ledger.commands.list(id).length, 1_025);
  assert.notEqual(ledger.commands.byAction(id, "a0"), undefined);
  assert.equal(ledger.commands.byAction(id, "a1"), undefined);
});

test("prune() forgets ended sandboxes beyond their number and time, and their commands after an hour", async () => {
  using ledger = new Ledger(":memory:");
  const hourMs = 60 * 60 * 1000;
  const young = record({ endedAtMs: 30 * hourMs, state: "stopped" });
  const old = record({ endedAtMs: hourMs, state: "stopped" });
  const alive = record();
  for (const each of [young, old, alive]) {
    await ledger.addSandbox(each, undefined);
    await ledger.commands.addIntent({
      sandboxId: each.id,
      actionId: "a",
      requestDigest: "d",
      detached: false,
      startedAtMs: 1,
    });
  }
  await ledger.prune(31 * hourMs + 1);
  assert.deepEqual(
    [young, old, alive].map((each) => ledger.sandbox(each.id) !== undefined),
    [true, false, true],
  );
  assert.deepEqual(
    [young, old, alive].map((each) => ledger.commands.list(each.id).length),
    [0, 0, 1],
  );
});

test("a write that fails is told to everyone of its group, and the next group is written", async () => {
  using ledger = new Ledger(":memory:");
  const twice = record();
  const results = await Promise.allSettled([
    ledger.addSandbox(twice, undefined),
    ledger.addSandbox(twice, undefined),
    ledger.addSandbox(record(), undefined),
  ]);
  assert.deepEqual(
    results.map((each) => each.status),
    ["rejected", "rejected", "rejected"],
  );
  await ledger.addSandbox(twice, undefined);
  assert.equal(ledger.listSandboxes(everything).length, 1);
});
