// A sandbox whose init is killed or stopped ends with the cause that is true, and its calls fail at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DsecError, type Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform } from "@dsec/testkit";
import { findInits, killProcess, until } from "./processes.ts";

const skip = reasonToSkip();
const timeout = 180_000;

test("a killed init ends its sandbox alone, as infrastructure's fault", { skip, timeout }, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  const neighbour = await platform.client.sandboxes.create({ memoryMib: 128 });
  const before = new Set(findInits(platform));
  const victim = await platform.client.sandboxes.create({ memoryMib: 128 });
  const [pid] = findInits(platform).filter((one) => !before.has(one));
  assert.ok(pid !== undefined, "the new sandbox has no init");

  const command = victim.exec(["sleep", "60"]);
  const failed = assert.rejects(command, (error: unknown) => {
    assert.ok(error instanceof DsecError);
    assert.equal(error.failure.fault, "infra");
    return true;
  });
  await killProcess(pid);
  await failed;
  await until(async () => (await victim.refresh()).state === "failed", 10_000);
  assert.deepEqual(
    { ...victim.info.end },
    { fault: "infra", cause: "agent_unreachable", maskable: true, agentCouldCause: true },
  );
  assert.equal((await neighbour.exec(["echo", "alive"])).stdout, "alive\n");
  await neighbour.stop();
  assert.deepEqual(await platform.leaks(), []);
});

test("a stopped init ends its sandbox within seconds", { skip, timeout }, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  const sandbox: Sandbox = await platform.client.sandboxes.create({ memoryMib: 128 });
  const [pid] = findInits(platform);
  assert.ok(pid !== undefined, "the sandbox has no init");
  process.kill(pid, "SIGSTOP");
  await until(async () => (await sandbox.refresh()).state === "failed", 30_000);
  assert.equal(sandbox.info.end?.cause, "agent_unreachable");
  assert.deepEqual(await platform.leaks(), []);
});
