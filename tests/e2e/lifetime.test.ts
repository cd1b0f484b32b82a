import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
before(async () => {
  if (skip === false) platform = await startPlatform();
});
after(async () => await platform?.[Symbol.asyncDispose]());

/** Looks without being a request to the sandbox itself, which would be activity. */
async function untilEnded(sandbox: Sandbox): Promise<void> {
  for (let left = 100; left > 0; left -= 1) {
    for await (const one of platform.client.sandboxes.list()) {
      if (one.id === sandbox.id && ["stopped", "failed"].includes(one.info.state)) return;
    }
    await delay(100);
  }
  assert.fail("the sandbox did not end");
}

test("an idle sandbox ends by itself, and the blame is the caller's", { skip }, async () => {
  const sandbox = await platform.client.sandboxes.create({ idleTimeoutMs: 1_000 });
  await untilEnded(sandbox);
  const info = await sandbox.refresh();
  assert.deepEqual([info.end?.cause, info.end?.fault, info.end?.maskable], ["idle_expired", "caller", true]);
});

test("a running command keeps a sandbox from idling, a detached one does not", { skip }, async () => {
  await using busy = await platform.client.sandboxes.create({ idleTimeoutMs: 1_000 });
  assert.equal((await busy.exec("sleep 2.5; echo done")).stdout, "done\n");
  const idle = await platform.client.sandboxes.create({ idleTimeoutMs: 1_000 });
  await idle.start("sleep 600", { detached: true });
  await untilEnded(idle);
});

test("the end of life comes while a command runs, and is policy then", { skip }, async () => {
  const sandbox = await platform.client.sandboxes.create({ maxLifetimeMs: 1_500 });
  const command = await sandbox.start("sleep 600");
  const outcome = await command.outcome({ signal: AbortSignal.timeout(20_000) });
  assert.deepEqual(
    [outcome.cause, outcome.failure.fault, outcome.failure.maskable],
    ["lifetime_expired", "policy", false],
  );
});

test("extend() moves the end of life", { skip }, async () => {
  await using sandbox = await platform.client.sandboxes.create({ maxLifetimeMs: 60_000 });
  const before = sandbox.info.lifetimeExpiresAtMs ?? 0;
  const info = await sandbox.extend(120_000);
  assert.ok((info.lifetimeExpiresAtMs ?? 0) >= before + 50_000);
  const unlimited = await sandbox.setLifetime({ maxLifetimeMs: null, idleTimeoutMs: 5_000 });
  assert.deepEqual([unlimited.lifetimeExpiresAtMs, unlimited.idleTimeoutMs], [null, 5_000]);
});
