import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type LayerManifest, type NodeId, newSandboxId } from "@dsec/contracts";
import { FakeHost } from "../fakes/fake-host.ts";
import { adoptContainer, createContainer, LeftBehindError, removeTraces } from "./container.ts";

const layer = { id: "lyaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } as LayerManifest;
const limits = { cpuCores: 1, memoryMib: 64, pidsMax: 64 };

function request(): { id: ReturnType<typeof newSandboxId>; layers: LayerManifest[]; limits: typeof limits } {
  return { id: newSandboxId("aaaa" as NodeId), layers: [layer], limits };
}

const signal = (): AbortSignal => AbortSignal.timeout(5_000);

async function withHost(action: (host: FakeHost) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "dsec-container-"));
  const host = new FakeHost(directory);
  try {
    await action(host);
  } finally {
    await host[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  }
}

/** How many calls of the host a whole life makes, to walk each of them. */
async function stepsOfLife(): Promise<{ readonly creation: number; readonly life: number }> {
  const steps = { creation: 0, life: 0 };
  await withHost(async (host) => {
    const container = await createContainer(host, request(), signal());
    steps.creation = host.calls.length;
    await container.destroy();
    steps.life = host.calls.length;
  });
  return steps;
}

test("a container gives everything back when it is destroyed, the ids last", async () => {
  await withHost(async (host) => {
    const container = await createContainer(host, request(), signal());
    assert.equal(container.isAlive(), true);
    assert.notDeepEqual(host.held(), []);
    await container.destroy();
    assert.deepEqual(host.held(), []);
    assert.equal(host.calls.at(-1), "ids.giveBack");
    const gone = host.calls.lastIndexOf("processes.whenGone");
    assert.ok(host.calls.lastIndexOf("spawner.kill") < gone, "it is killed before it is waited for");
    assert.ok(gone < host.calls.lastIndexOf("directories.remove"), "files go after the processes");
  });
});

test("createContainer() gives back everything, whichever step fails", async () => {
  const { creation } = await stepsOfLife();
  assert.ok(creation >= 5, "the walk saw the steps of creation");
  for (let failAt = 0; failAt < creation; failAt++) {
    await withHost(async (host) => {
      host.failAt = failAt;
      await assert.rejects(createContainer(host, request(), signal()), /injected/);
      assert.deepEqual(host.held(), [], `after ${host.calls.join(", ")}`);
    });
  }
});

test("createContainer() keeps files and ids when it cannot show that the processes are gone", async () => {
  await withHost(async (host) => {
    host.alwaysFail = new Set(["spawner.create", "groups.remove"]);
    const { id, ...rest } = request();
    await assert.rejects(createContainer(host, { id, ...rest }, signal()), LeftBehindError);
    assert.deepEqual(host.held(), [`directory ${id}`, `groups ${id}`, "ids 65536"]);
    host.alwaysFail = new Set();
    await removeTraces(host, id, undefined);
    assert.deepEqual(host.held(), ["ids 65536"]);
  });
});

test("createContainer() ends an init that the lost spawner had made", async () => {
  await withHost(async (host) => {
    host.loseAnswerOfCreate = true;
    await assert.rejects(createContainer(host, request(), signal()), /lost/);
    assert.deepEqual(host.held(), []);
  });
});

test("destroy() may fail at any step, and called again it gives everything back", async () => {
  const { creation, life } = await stepsOfLife();
  assert.ok(life > creation, "the walk saw the steps of destruction");
  // The last step, giving the ids back, only changes a set in memory.
  for (let failAt = creation; failAt < life - 1; failAt++) {
    await withHost(async (host) => {
      const container = await createContainer(host, request(), signal());
      host.failAt = failAt;
      const failed = await container.destroy().then(
        () => false,
        () => true,
      );
      const { idsFreedAt, processesGoneAt } = host;
      if (idsFreedAt !== undefined) assert.ok(processesGoneAt !== undefined && processesGoneAt < idsFreedAt);
      host.failAt = undefined;
      if (failed) await container.destroy();
      assert.deepEqual(host.held(), [], `failing at ${host.calls[failAt]}`);
    });
  }
});

test("an adopted container holds the same as a created one", async () => {
  await withHost(async (host) => {
    const { id, ...rest } = request();
    const made = await createContainer(host, { id, ...rest }, signal());
    const next = host.restarted();
    const adopted = await adoptContainer(next, { id, ...rest }, made);
    assert.equal(adopted.isAlive(), true);
    await adopted.destroy();
    assert.deepEqual(next.held(), []);
  });
});
