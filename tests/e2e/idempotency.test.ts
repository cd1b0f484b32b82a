import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
before(async () => {
  if (skip === false) platform = await startPlatform();
});
after(async () => await platform?.[Symbol.asyncDispose]());

test("the same key with the same body gives the same sandbox, at once and later", { skip }, async () => {
  const { sandboxes } = platform.client;
  const make = async () => await sandboxes.create({ labels: { a: "1" } }, { idempotencyKey: "same" });
  const made = await Promise.all([make(), make(), make()]);
  await using first = await make();
  assert.deepEqual(new Set(made.map((sandbox) => sandbox.id)), new Set([first.id]));
});

test("the same key with another body is a conflict", { skip }, async () => {
  const { sandboxes } = platform.client;
  await using _first = await sandboxes.create({ labels: { a: "1" } }, { idempotencyKey: "other" });
  await assert.rejects(sandboxes.create({ labels: { a: "2" } }, { idempotencyKey: "other" }), {
    code: "conflict",
  });
});

test("a key outlives the edge's process", { skip }, async () => {
  const { sandboxes } = platform.client;
  await using first = await sandboxes.create({}, { idempotencyKey: "edge-restart" });
  await platform.killEdge();
  await platform.restartEdges();
  assert.equal((await sandboxes.create({}, { idempotencyKey: "edge-restart" })).id, first.id);
});

test("a batch yields each sandbox as it is ready, and the same batch again is the same sandboxes", {
  skip,
}, async () => {
  const batch = async (): Promise<string[]> => {
    const ids = Array.from({ length: 12 }, () => "");
    const template = { memoryMib: 128 };
    for await (const item of platform.client.sandboxes.batch(
      { count: 12, template },
      { idempotencyKey: "batch" },
    )) {
      assert.ok(item.sandbox !== undefined, String(item.error));
      ids[item.index] = item.sandbox.id;
    }
    return ids;
  };
  const ids = await batch();
  assert.equal(new Set(ids).size, 12);
  assert.deepEqual(await batch(), ids);
  await Promise.all(ids.map(async (id) => await (await platform.client.sandboxes.get(id)).stop()));
});
