import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LayerStore } from "./store.ts";

const signal = AbortSignal.timeout(60_000);
const skip = existsSync("/usr/bin/mkfs.erofs") ? false : "mkfs.erofs (package erofs-utils) is not installed";

async function scene() {
  const root = mkdtempSync(join(tmpdir(), "dsec-store-"));
  const directory = join(root, "source");
  mkdirSync(join(directory, "sub"), { recursive: true });
  writeFileSync(join(directory, "sub", "file"), "content");
  utimesSync(join(directory, "sub", "file"), 1_000, 1_000);
  const store = new LayerStore(join(root, "layers"));
  await store.open();
  const source = { kind: "base", name: "tools/one@1", directory, provenance: "a test" } as const;
  return { root, directory, store, source, [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
}

test("importDirectory() makes a layer that resolves by name and by id, and leaves nothing in incoming", {
  skip,
}, async () => {
  using here = await scene();
  const manifest = await here.store.importDirectory(here.source, () => undefined, signal);
  assert.deepEqual(await here.store.resolve("tools/one@1"), manifest);
  assert.deepEqual(await here.store.resolve(manifest.id), manifest);
  assert.deepEqual(await here.store.list(), [manifest]);
  assert.deepEqual(readdirSync(join(here.root, "layers", "incoming")), []);
});

test("importDirectory() gives the same layer for the same tree and another for another", {
  skip,
}, async () => {
  using here = await scene();
  const [one, two] = await Promise.all(
    [1, 2].map(async () => await here.store.importDirectory(here.source, () => undefined, signal)),
  );
  assert.equal(one?.id, two?.id);
  utimesSync(join(here.directory, "sub", "file"), 1_001, 1_001);
  const changed = await here.store.importDirectory(here.source, () => undefined, signal);
  assert.notEqual(changed.id, one?.id);
  assert.equal((await here.store.resolve("tools/one@1")).id, changed.id);
});

test("importDirectory() refuses devices, sockets and names that are unsafe, and changes nothing", {
  skip,
}, async () => {
  using here = await scene();
  for (const name of ["", "../x", "A", "/abs", `ly${"a".repeat(32)}`]) {
    await assert.rejects(
      here.store.importDirectory({ ...here.source, name }, () => undefined, signal),
      { code: "invalid_request" },
    );
  }
  if (process.getuid?.() === 0) {
    execFileSync("mknod", [join(here.directory, "device"), "c", "1", "3"]);
    await assert.rejects(
      here.store.importDirectory(here.source, () => undefined, signal),
      { code: "invalid_request" },
    );
  }
  assert.deepEqual(await here.store.list(), []);
});

test("resolve() of an unknown name or id is not_found", async () => {
  using here = await scene();
  for (const reference of ["nothing", `ly${"a".repeat(32)}`, "../manifest.json"]) {
    await assert.rejects(here.store.resolve(reference), { code: "not_found" });
  }
});
