// A repository layer holds the base commit and nothing else, and what one sandbox changes no other sees.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeTaskRepository } from "@dsec/cli/task-repository";
import { reasonToSkip, startPlatform } from "@dsec/testkit";

const timeout = 180_000;

test("a repository layer holds only the base commit; changes stay in their sandbox", {
  skip: reasonToSkip(),
  timeout,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "dsec-workspace-test-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const layerName = `test/workspace-${process.pid}`;
  await using platform = await startPlatform({ signal: t.signal });
  await makeLayer();

  const environment = { workspace: layerName };
  await using one = await platform.client.sandboxes.create({ environment, memoryMib: 256 });
  await using other = await platform.client.sandboxes.create({ environment, memoryMib: 256 });
  const git = "git -C /workspace -c safe.directory=/workspace";
  const history = await one.exec(
    [
      `${git} log --all --oneline | wc -l`,
      `${git} cat-file --batch-all-objects --batch-check | grep -c ' commit '`,
      `${git} cat-file --batch-all-objects --batch-check | grep -c ' blob '`,
      `${git} fsck --unreachable --no-reflogs | wc -l`,
      `${git} status --porcelain | wc -l`,
    ].join("; "),
  );
  assert.equal(history.stdout, "1\n1\n2\n0\n0\n", history.stderr);

  const change = await one.exec(
    "cd /workspace && echo changed >answer.txt && rm notes/later.txt && mkdir new",
  );
  assert.equal(change.exitCode, 0, change.stderr);
  const seen = "cd /workspace && cat answer.txt notes/later.txt && ls";
  assert.equal((await other.exec(seen)).stdout, "42\nlater\nanswer.txt\nnotes\n");
  await using fresh = await platform.client.sandboxes.create({ environment, memoryMib: 256 });
  assert.equal((await fresh.exec(seen)).stdout, "42\nlater\nanswer.txt\nnotes\n");

  async function makeLayer(): Promise<void> {
    const files = join(folder, "files");
    mkdirSync(join(files, "notes"), { recursive: true });
    writeFileSync(join(files, "answer.txt"), "42\n");
    writeFileSync(join(files, "notes/later.txt"), "later\n");
    const commit = {
      authorName: "Base",
      authorEmail: "base@example.invalid",
      date: new Date("2024-01-01T00:00:00Z"),
      message: "Begin",
    };
    const task = { name: "workspace", filesDirectory: files, commit };
    await using repository = await makeTaskRepository(task, t.signal);
    const root = join(folder, "layer");
    mkdirSync(root);
    chmodSync(root, 0o755);
    execFileSync("cp", ["-a", repository.directory, join(root, "workspace")]);
    const layer = { kind: "workspace", name: layerName, source: { directory: root } } as const;
    await platform.client.layers.import(layer, { signal: t.signal });
  }
});
