import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
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

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");

test("dsec edge --join adds a node, and creations go to both", { skip, timeout: 120_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "dsec-second-edge-"));
  const { token } = await platform.client.nodes.createJoinToken();
  const { places, state } = platform;
  const edge = spawn(
    process.execPath,
    [
      main,
      "edge",
      "--join",
      state.clusterUrl,
      token,
      `--data-dir=${join(directory, "data")}`,
      `--run-dir=${join(directory, "run")}`,
      `--layers-dir=${places.layersDir}`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const lines = createInterface({ input: edge.stdout });
    const [line] = (await once(lines, "line")) as [string];
    const { nodeId } = JSON.parse(line) as { nodeId: string };
    await untilHealthy(nodeId);

    const sandboxes: Sandbox[] = [];
    for (let count = 0; count < 24; count += 1)
      sandboxes.push(await platform.client.sandboxes.create({ memoryMib: 64 }));
    const nodes = new Set(sandboxes.map((sandbox) => sandbox.info.node));
    assert.deepEqual(nodes, new Set([nodeId, state.edges[0]?.nodeId]));
    await Promise.all(
      sandboxes.map(async (sandbox) => {
        assert.equal((await sandbox.exec("echo here")).stdout, "here\n");
        await sandbox.stop();
      }),
    );
  } finally {
    edge.kill("SIGINT");
    await once(edge, "exit");
    rmSync(directory, { recursive: true, force: true });
  }
});

async function untilHealthy(nodeId: string): Promise<void> {
  for (let left = 200; left > 0; left -= 1) {
    const nodes = await platform.client.nodes.list();
    if (nodes.some((node) => node.id === nodeId && node.health === "healthy")) return;
    await delay(50);
  }
  assert.fail(`node ${nodeId} does not become healthy`);
}
