// Situations with the life cycle and the control plane that users of sandbox platforms met.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { DsecError, type Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
const timeout = 300_000;

test("20 concurrent creations under one key are one sandbox; another body is a conflict", {
  skip,
  timeout,
}, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  const { sandboxes } = platform.client;
  const idempotencyKey = randomUUID();
  const made = await Promise.all(
    Array.from({ length: 20 }, async () => await sandboxes.create({ memoryMib: 128 }, { idempotencyKey })),
  );
  assert.equal(new Set(made.map(({ id }) => id)).size, 1);
  assert.equal((await Array.fromAsync(sandboxes.list())).length, 1);
  await assert.rejects(sandboxes.create({ memoryMib: 256 }, { idempotencyKey }), { code: "conflict" });

  const interrupted = randomUUID();
  const pending = createUnder(platform, interrupted);
  await platform.killControl();
  await platform.restartControl();
  const sandbox = await pending;
  const again = await createUnder(platform, interrupted);
  assert.equal(again.id, sandbox.id);
  assert.equal((await Array.fromAsync(platform.client.sandboxes.list())).length, 2);
  await Promise.all([made[0]?.stop(), sandbox.stop()]);
  assert.deepEqual(await platform.leaks(), []);
});

async function createUnder({ client }: TestPlatform, idempotencyKey: string): Promise<Sandbox> {
  return await client.sandboxes.create({ memoryMib: 128 }, { idempotencyKey });
}

test("more creations than a node admits are refused with a time to retry, and leave no orphan", {
  skip,
  timeout,
}, async (t) => {
  const admitted = 10;
  await using platform = await startPlatform({ edgeSettings: { sandboxesMax: admitted }, signal: t.signal });
  const answers = await Promise.all(Array.from({ length: 60 }, async () => await createOnce(platform)));
  const made = answers.filter(({ status }) => status === 201 || status === 200);
  const refused = answers.filter((answer) => !made.includes(answer));
  assert.equal(made.length, admitted);
  for (const { status, body } of refused) {
    assert.ok([429, 503].includes(status), JSON.stringify(body));
    assert.ok(["no_capacity", "too_many"].includes(String(body["code"])), JSON.stringify(body));
    assert.ok(Number(body["retryAfterMs"]) > 0, JSON.stringify(body));
  }
  const listed = await Array.fromAsync(platform.client.sandboxes.list({ state: "running" }));
  assert.deepEqual(
    listed.map(({ id }) => id).toSorted(),
    made.map(({ body }) => String(body["id"])).toSorted(),
  );
  await Promise.all(listed.map(async (sandbox) => await sandbox.stop()));
  await (await platform.client.sandboxes.create({ memoryMib: 128 })).stop();
  assert.deepEqual(await platform.leaks(), []);
});

/** One try, without the SDK's repetitions. */
async function createOnce({
  url,
  key,
}: TestPlatform): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const response = await fetch(`${url}/v1/sandboxes`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "idempotency-key": randomUUID(),
    },
    body: JSON.stringify({ memoryMib: 64 }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test("an environment that does not exist is a typed refusal within seconds", { skip, timeout }, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  const startedAt = performance.now();
  await assert.rejects(
    platform.client.sandboxes.create({ environment: { base: "no-such-base" } }),
    (error: unknown) => error instanceof DsecError && ["not_found", "invalid_request"].includes(error.code),
  );
  assert.ok(performance.now() - startedAt < 10_000);
  assert.deepEqual(await platform.leaks(), []);
});

test("a node that dies during a command is infrastructure's fault, never an exit code", {
  skip,
  timeout,
}, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  const sandbox = await platform.client.sandboxes.create({ memoryMib: 128 });
  const command = fetch(`${platform.url}/v1/sandboxes/${sandbox.id}/exec`, {
    method: "POST",
    headers: { authorization: `Bearer ${platform.key}`, "content-type": "application/json" },
    body: JSON.stringify({ shell: "touch /root/began; sleep 30" }),
  });
  while ((await sandbox.exec("test -e /root/began")).exitCode !== 0);
  await platform.killEdge();
  const response = await command;
  const body = (await response.json()) as { code: string; failure?: { fault: string; maskable: boolean } };
  assert.equal(response.status, 503, JSON.stringify(body));
  assert.ok(["unavailable", "node_lost", "outcome_unknown"].includes(body.code), body.code);
  if (body.failure !== undefined)
    assert.deepEqual([body.failure.fault, body.failure.maskable], ["infra", true]);
  await platform.restartEdges();
  await sandbox.stop();
});
