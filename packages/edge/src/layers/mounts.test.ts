import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { LayerManifest } from "@dsec/contracts";
import { LayerMounts } from "./mounts.ts";

const directory = mkdtempSync(join(tmpdir(), "dsec-mounts-"));
after(() => rmSync(directory, { recursive: true }));

function layer(id: string): LayerManifest {
  writeFileSync(join(directory, `${id}.meta`), "meta");
  writeFileSync(join(directory, `${id}.data`), "data!");
  const digest = "0".repeat(64);
  return {
    formatVersion: 1,
    id,
    kind: "base",
    name: id,
    metaSha256: digest,
    metaBytes: 4,
    dataSha256: digest,
    dataBytes: 5,
    createdAtMs: 0,
    provenance: "",
  };
}

function mounts(idleMountsMax: number, failing?: string) {
  const mounted = new Set<string>();
  const calls: string[] = [];
  const mounter = {
    async mountLayer(id: string): Promise<void> {
      calls.push(`mount ${id}`);
      if (id === failing) throw new Error("cannot mount");
      mounted.add(id);
    },
    async unmountLayer(id: string): Promise<void> {
      calls.push(`unmount ${id}`);
      mounted.delete(id);
    },
    listLayers: async () => [...mounted],
  };
  const paths = (id: string) => ({
    meta: join(directory, `${id}.meta`),
    data: join(directory, `${id}.data`),
  });
  return { mounted, calls, subject: new LayerMounts({ mounter, paths, idleMountsMax }) };
}

test("LayerMounts mounts a layer once however many sandboxes use it at once", async () => {
  const { subject, calls } = mounts(0);
  const layers = [layer("a"), layer("b")];
  const references = await Promise.all(Array.from({ length: 10 }, async () => await subject.acquire(layers)));
  assert.deepEqual(calls, ["mount a", "mount b"]);
  for (const reference of references) await reference[Symbol.asyncDispose]();
  assert.deepEqual(calls.slice(2).toSorted(), ["unmount a", "unmount b"]);
});

test("LayerMounts keeps the latest idle mounts up to its limit and disposing twice counts once", async () => {
  const { subject, mounted } = mounts(1);
  const [a, b] = [await subject.acquire([layer("a")]), await subject.acquire([layer("b")])];
  const other = await subject.acquire([layer("b")]);
  await a[Symbol.asyncDispose]();
  await b[Symbol.asyncDispose]();
  await b[Symbol.asyncDispose]();
  assert.deepEqual([...mounted], ["a", "b"]);
  await other[Symbol.asyncDispose]();
  assert.deepEqual([...mounted], ["b"]);
});

test("LayerMounts gives everything back when one layer of several cannot be mounted", async () => {
  const { subject, mounted } = mounts(0, "bad");
  await assert.rejects(subject.acquire([layer("a"), layer("bad")]), /cannot mount/);
  assert.deepEqual([...mounted], []);
});

test("LayerMounts refuses a layer whose file in the store is truncated", async () => {
  const { subject, calls } = mounts(0);
  const truncated = { ...layer("a"), dataBytes: 6 };
  await assert.rejects(subject.acquire([truncated]), { code: "internal" });
  assert.deepEqual(calls, []);
});
