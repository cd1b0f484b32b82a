// A node on the real kernel: sandboxes live through kill -9 of edge and of spawner, and nothing stays when they end.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { isPlatformError, newNodeId } from "@dsec/contracts";
import { detectCgroups } from "@dsec/edge/cgroup-detection";
import { type EdgeNode, startNode } from "@dsec/edge/node";
import { createLog, wait } from "@dsec/kit";
import {
  asker,
  execRequest,
  type NodeSetup,
  nodeConfig,
  reasonToSkip,
  sandboxRequest,
  startRequest,
} from "./node-setup.ts";
import { makeSmallBase } from "./small-base.ts";

const skip = reasonToSkip;
const never = new AbortController().signal;
const log = createLog("edge", { level: process.env["DSEC_LOG"] ?? "fatal" });

async function makeSetup(context: TestContext): Promise<NodeSetup> {
  const directory = mkdtempSync(join(tmpdir(), "dsec-node-"));
  const setup = { nodeId: newNodeId(), dataDir: join(directory, "data"), runDir: join(directory, "run") };
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  await makeSmallBase(join(setup.dataDir, "layers"));
  return setup;
}

const startOptions = { log, progress: () => undefined, signal: new AbortController().signal };

async function start(context: TestContext, setup: NodeSetup): Promise<EdgeNode> {
  const node = await startNode(nodeConfig(setup), setup.nodeId, startOptions);
  context.after(async () => {
    if (!existsSync(setup.runDir)) return;
    await node.endAll();
    await node[Symbol.asyncDispose]();
  });
  return node;
}

async function run(node: EdgeNode, id: string, shell: string): Promise<string> {
  const result = await node.sandboxes.live(asker, id).commands.exec(execRequest(shell), never);
  assert.equal(result.outcome.exitCode, 0, `${shell}: ${result.stderr.data} ${result.outcome.message}`);
  return result.stdout.data.trim();
}

/** What the node has on the host, by what the host says. */
function tracesOf(setup: NodeSetup): string[] {
  const processes = readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      // Its parent is this test, which has yet to hear of its end.
      if (/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return false;
      return readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(`/dsec/${setup.nodeId}`);
    } catch {
      // It ended meanwhile.
      return false;
    }
  });
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  return [
    ...processes.map((pid) => `process ${pid}`),
    ...detectCgroups(setup.nodeId)
      .list()
      .map((id) => `groups ${id}`),
    ...mounts.filter((line) => line.includes(setup.runDir)),
    ...(existsSync(setup.runDir) ? [setup.runDir] : []),
    ...readdirSync(join(setup.dataDir, "edge", setup.nodeId, "sandboxes")).map((name) => `directory ${name}`),
  ];
}

async function end(setup: NodeSetup, node: EdgeNode): Promise<void> {
  await node.endAll();
  await node[Symbol.asyncDispose]();
  assert.deepEqual(tracesOf(setup), []);
}

function startProcess(setup: NodeSetup, mode: string): { child: ChildProcess; lines: AsyncIterable<string> } {
  const script = join(import.meta.dirname, "edge-process.ts");
  const child = spawn(process.execPath, [script, JSON.stringify(setup), mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { child, lines: createInterface({ input: child.stdout }) };
}

async function untilReady(lines: AsyncIterable<string>): Promise<string[]> {
  const ids: string[] = [];
  for await (const line of lines) {
    const { id, ready } = JSON.parse(line) as { id?: string; ready?: boolean };
    if (id !== undefined) ids.push(id);
    if (ready === true) return ids;
  }
  throw new Error("the edge ended before it was ready");
}

async function killNow(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

test("a sandbox works, and nothing of the node stays when it ends", { skip }, async (context) => {
  const setup = await makeSetup(context);
  const node = await start(context, setup);
  const { id } = await node.sandboxes.create(asker, { ...sandboxRequest, env: { A: "b" } }, undefined);
  assert.equal(await run(node, id, "id -u; echo $A; echo $HOME"), "0\nb\n/root");
  const { commands, files } = node.sandboxes.live(asker, id);
  const asUser = await commands.exec({ ...execRequest("id -u; echo $HOME"), user: "user" }, never);
  assert.equal(asUser.stdout.data, "1000\n/home/user\n");
  const content = Buffer.alloc(3_000_000, "x");
  const target = { path: "/root/deep/file", user: undefined, mode: "640", makeParents: true };
  assert.equal((await files.write(target, Readable.from([content]))).sizeBytes, content.length);
  assert.equal(await run(node, id, "stat -c '%s %a %u' /root/deep/file"), "3000000 640 0");
  const download = await files.read({
    path: "/root/deep/file",
    user: undefined,
    offset: 1,
    length: undefined,
  });
  let bytes = 0;
  for await (const chunk of download.chunks) bytes += chunk.length;
  assert.equal(bytes, content.length - 1);
  const listing = await files.list({ path: "/root/deep", user: undefined, entriesMax: 10 });
  assert.deepEqual(
    listing.items.map(({ name }) => name),
    ["file"],
  );
  await files.remove({ path: "/root/deep", user: undefined, recursive: true });
  await assert.rejects(files.stat({ path: "/root/deep", user: undefined, follow: true }), {
    code: "file_not_found",
  });
  const slow = await commands.exec({ ...execRequest("sleep 60"), timeoutMs: 100 }, never);
  assert.equal(slow.outcome.cause, "timeout");
  const input = await commands.exec({ ...execRequest("cat"), stdin: "given" }, never);
  assert.equal(input.stdout.data, "given");
  const large = await commands.exec(
    { ...execRequest("head -c 2000000 /dev/zero; echo end >&2"), outputBytesMax: 10 },
    never,
  );
  assert.deepEqual(
    [large.stdout.data.length, large.stdout.truncated, large.stderr.data],
    [10, true, "end\n"],
  );
  await end(setup, node);
});

test("kill -9 of edge: sandboxes are adopted, files and processes intact, no action runs twice", {
  skip,
}, async (context) => {
  const setup = await makeSetup(context);
  const { child, lines } = startProcess(setup, "hold");
  const ids = await untilReady(lines);
  await killNow(child);
  const node = await start(context, setup);
  for (const [index, id] of ids.entries()) {
    assert.equal(await run(node, id, "cat /root/marker"), id);
    await run(node, id, "a=$(cat /root/counter); while [ $(cat /root/counter) = $a ]; do sleep 0.01; done");
    const { commands } = node.sandboxes.live(asker, id);
    const once = { ...startRequest("echo once >> /root/once; sleep 1; exit 9"), actionId: "once" };
    const again = await commands.start(once);
    assert.equal(again.replay, true);
    assert.equal((await commands.outcome(again.commandId)).exitCode, 9);
    assert.equal(await run(node, id, "wc -l < /root/once"), "1");
    assert.equal((await node.sandboxes.create(asker, sandboxRequest, `key-${index}`)).id, id);
  }
  await end(setup, node);
});

test("kill -9 of edge in the midst of everything leaves nothing that the next edge does not clear", {
  skip,
  timeout: 120_000,
}, async (context) => {
  const setup = await makeSetup(context);
  for (const delayMs of [0, 3, 7, 20, 55, 90]) {
    const { child, lines } = startProcess(setup, "churn");
    await untilReady(lines);
    await wait(delayMs, never);
    await killNow(child);
  }
  const node = await start(context, setup);
  const alive = node.sandboxes.list(asker, { limit: 1_000, state: "running" }).items;
  for (const { id } of alive) assert.equal(await run(node, id, "echo alive"), "alive");
  await end(setup, node);
});

test("kill -9 of the spawner: it is restarted, sandboxes live on and their ends are seen", {
  skip,
}, async (context) => {
  const setup = await makeSetup(context);
  const node = await start(context, setup);
  const first = await node.sandboxes.create(asker, sandboxRequest, undefined);
  process.kill(spawnerOf(setup), "SIGKILL");
  assert.equal(await run(node, first.id, "echo alive"), "alive");
  const second = await node.sandboxes.create(asker, sandboxRequest, undefined);
  assert.equal(await run(node, second.id, "echo new"), "new");
  const init = node.sandboxes.live(asker, first.id).pid;
  assert.ok(init !== undefined);
  process.kill(init, "SIGKILL");
  for (let i = 0; i < 200 && node.sandboxes.get(asker, first.id).state !== "failed"; i++)
    await wait(10, never);
  const view = node.sandboxes.get(asker, first.id);
  assert.deepEqual([view.state, view.end?.cause], ["failed", "agent_unreachable"]);
  await end(setup, node);
});

test("a stopped init makes its sandbox unreachable within seconds, and it is cleared away", {
  skip,
}, async (context) => {
  const setup = await makeSetup(context);
  const node = await start(context, setup);
  const { id } = await node.sandboxes.create(asker, sandboxRequest, undefined);
  const { pid, commands } = node.sandboxes.live(asker, id);
  assert.ok(pid !== undefined);
  process.kill(pid, "SIGSTOP");
  const { outcome } = await commands
    .exec(execRequest("true"), AbortSignal.timeout(20_000))
    .catch((error: unknown) => {
      // Init never accepted the command: that is all the caller may be told.
      assert.ok(
        isPlatformError(error) && ["outcome_unknown", "unavailable"].includes(error.code),
        String(error),
      );
      return { outcome: undefined };
    });
  assert.equal(outcome, undefined);
  for (let i = 0; i < 500 && node.sandboxes.get(asker, id).state !== "failed"; i++) await wait(10, never);
  assert.equal(node.sandboxes.get(asker, id).end?.cause, "agent_unreachable");
  await end(setup, node);
});

function spawnerOf(setup: NodeSetup): number {
  const socket = join(setup.runDir, setup.nodeId, "spawner.sock");
  const pid = readdirSync("/proc").find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").includes(socket);
    } catch {
      // It ended meanwhile.
      return false;
    }
  });
  assert.ok(pid !== undefined, "the spawner runs");
  return Number(pid);
}
