import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import type { Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  if (skip !== false) return;
  platform = await startPlatform();
  sandbox = await platform.client.sandboxes.create();
});
after(async () => {
  await sandbox?.stop();
  await platform?.[Symbol.asyncDispose]();
});

test("write(), stat(), read(), list() and remove()", { skip }, async () => {
  const { files } = sandbox;
  const written = await files.write("/srv/a/b.txt", "content", { mode: "750" });
  assert.deepEqual(
    [written.path, written.kind, written.sizeBytes, written.mode & 0o777],
    ["/srv/a/b.txt", "file", 7, 0o750],
  );
  assert.equal(await files.readText("/srv/a/b.txt"), "content");
  assert.equal(await files.readText("/srv/a/b.txt", { offset: 2, length: 3 }), "nte");
  assert.equal((await sandbox.exec("cat /srv/a/b.txt")).stdout, "content");
  await sandbox.exec("ln -s b.txt /srv/a/link; mkdir /srv/a/dir");
  const { items, truncated } = await files.list("/srv/a");
  assert.deepEqual(
    [items.map((item) => `${item.name} ${item.kind}`).toSorted(compareText), truncated],
    [["b.txt file", "dir directory", "link symlink"], false],
  );
  assert.equal((await files.stat("/srv/a/link", { follow: false })).target, "b.txt");
  await assert.rejects(files.remove("/srv/a"), { code: "directory_not_empty" });
  await files.remove("/srv/a", { recursive: true });
  await assert.rejects(files.stat("/srv/a"), { code: "file_not_found" });
});

test("large files travel as streams and come back the same", { skip }, async () => {
  const content = new Uint8Array(randomBytes(20 * 1024 * 1024));
  await sandbox.files.write("/srv/large", content);
  const back = await sandbox.files.read("/srv/large");
  assert.ok(Buffer.from(content).equals(back));
  let length = 0;
  for await (const part of sandbox.files.readStream("/srv/large")) length += part.length;
  assert.equal(length, content.length);
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < content.length; at += 1_000_000)
        controller.enqueue(content.subarray(at, at + 1_000_000));
      controller.close();
    },
  });
  assert.equal((await sandbox.files.write("/srv/streamed", stream)).sizeBytes, content.length);
  assert.equal((await sandbox.exec("cmp /srv/large /srv/streamed")).exitCode, 0);
});

test("the kernel applies the caller's rights, and links into /proc/self are not followed into the platform", {
  skip,
}, async () => {
  const { files } = sandbox;
  await assert.rejects(files.write("/etc/by-agent", "x", { user: "agent" }), { code: "file_denied" });
  await assert.rejects(files.readText("/etc/shadow", { user: "agent" }), { code: "file_denied" });
  await sandbox.exec("ln -s /proc/self/mem /srv/trap");
  await assert.rejects(
    files.write("/srv/trap", "x", { makeParents: false }).then(async () => {
      // Replacing the link itself is fine; writing through it is not.
      assert.equal((await files.stat("/srv/trap", { follow: false })).kind, "file");
      throw Object.assign(new Error("replaced"), { code: "file_denied" });
    }),
    { code: /file_denied|file_wrong_kind|invalid_request/ },
  );
});

function compareText(a: string, b: string): number {
  return a < b ? -1 : 1;
}
