// The walk of one request through the platform: sdk → control → edge → chronus → kernel, and back to nothing.
import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { after, before, test } from "node:test";
import { nodeOf, type SandboxId } from "@dsec/contracts";
import { DsecError } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
before(async () => {
  if (skip === false) platform = await startPlatform();
});
after(async () => await platform?.[Symbol.asyncDispose]());

test("create() walks from the SDK into the kernel, and stop() takes everything back", { skip }, async () => {
  const sandbox = await platform.client.sandboxes.create({
    cpuCores: 0.5,
    memoryMib: 256,
    labels: { purpose: "walk" },
    env: { GREETING: "hello" },
  });
  const { info } = sandbox;
  assert.equal(info.state, "running");
  assert.deepEqual([info.cpuCores, info.memoryMib, info.labels], [0.5, 256, { purpose: "walk" }]);
  assert.equal(info.environment.base, "default");

  // Placement: the id names a node that control knows.
  const nodes = await platform.client.nodes.list();
  assert.deepEqual(
    nodes.map((node) => node.id),
    [nodeOf(info.id as SandboxId)],
  );
  // The node: directories, socket and groups of the sandbox.
  const { runDir, dataDir } = platform.places;
  assert.ok(existsSync(`${runDir}/${info.node}/sb/${info.id}.sock`));
  assert.ok(existsSync(`${dataDir}/edge/${info.node}/sandboxes/${info.id}/upper`));
  assert.notEqual(groupsOf(info.id).length, 0);
  // The kernel: namespaces of its own, limits, environment.
  const seen = await sandbox.exec(
    'echo "$GREETING $(id -u) $$ $(ls /sys/class/net 2>/dev/null | tr "\\n" " ")"',
  );
  assert.equal(seen.exitCode, 0, seen.stderr);
  assert.match(seen.stdout, /^hello 0 \d+ /);
  const limit = await sandbox.exec("python3 -c 'x = bytearray(400 << 20)'");
  assert.notEqual(limit.exitCode, 0);
  assert.equal(limit.outcome.cause, "oom");

  await sandbox.stop();
  assert.equal(existsSync(`${runDir}/${info.node}/sb/${info.id}.sock`), false);
  assert.equal(existsSync(`${dataDir}/edge/${info.node}/sandboxes/${info.id}`), false);
  assert.deepEqual(groupsOf(info.id), []);
  await assert.rejects(sandbox.exec("true"), (error) => error instanceof DsecError && error.status >= 400);
  await sandbox.stop();
  assert.deepEqual(await platform.leaks(), []);
});

test("list() finds living sandboxes by label, and get() the one", { skip }, async () => {
  await using one = await platform.client.sandboxes.create({ labels: { kind: "a" } });
  await using two = await platform.client.sandboxes.create({ labels: { kind: "b" } });
  const found: string[] = [];
  for await (const sandbox of platform.client.sandboxes.list({ label: ["kind=b"], limit: 1 }))
    found.push(sandbox.id);
  assert.deepEqual(found, [two.id]);
  assert.equal((await platform.client.sandboxes.get(one.id)).info.labels["kind"], "a");
});

test("what the fleet cannot do is refused with its name", { skip }, async () => {
  await assert.rejects(platform.client.sandboxes.create({ backend: "microvm" }), {
    code: "unsupported_capability",
  });
  await assert.rejects(platform.client.sandboxes.create({ environment: { base: "no-such-layer" } }), {
    code: "not_found",
  });
  await assert.rejects(platform.client.sandboxes.create({ memoryMib: 1 }), { code: "invalid_request" });
  const unknown = { colour: "red" } as object;
  await assert.rejects(platform.client.sandboxes.create(unknown), { code: "invalid_request" });
});

function groupsOf(id: string): string[] {
  return globSync(`/sys/fs/cgroup/{,*/,*/*/}dsec/*/sb/${id}`);
}
