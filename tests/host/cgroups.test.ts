// The limits of a sandbox on this host's hierarchies, whichever version each controller has here.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { newNodeId, newSandboxId } from "@dsec/contracts";
import { detectCgroups } from "@dsec/edge/cgroup-detection";
import type { Cgroups, SandboxCgroups } from "@dsec/edge/cgroups";

const options = { skip: process.getuid?.() === 0 ? false : "needs root", timeout: 30_000 } as const;
const limits = { cpuCores: 0.5, memoryMib: 64, pidsMax: 16 };
const signal = AbortSignal.timeout(60_000);

/** A node with one sandbox; both are gone afterwards. */
function scene(): AsyncDisposable & { cgroups: Cgroups; groups: SandboxCgroups; id: string } {
  const nodeId = newNodeId();
  const cgroups = detectCgroups(nodeId);
  cgroups.prepareNode();
  const id = newSandboxId(nodeId);
  const groups = cgroups.create(id, limits);
  return {
    cgroups,
    groups,
    id,
    [Symbol.asyncDispose]: async () => {
      groups.killAll();
      await groups.remove(signal);
      await cgroups.removeNode();
      for (const procs of cgroups.agentsProcs()) assert.ok(!existsSync(dirname(dirname(procs))), procs);
    },
  };
}

/** Runs a script as the sandbox's runner would: it joins the groups first. */
function startInside(groups: SandboxCgroups, script: string) {
  const join = groups.runnerProcs.map((file) => `echo $$ > ${file}`).join("; ");
  return spawn("sh", ["-c", `${join}; ${script}`], { stdio: ["ignore", "pipe", "pipe"] });
}

async function runInside(groups: SandboxCgroups, script: string) {
  const child = startInside(groups, script);
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const [code, killedBy] = await once(child, "close");
  return { code, killedBy, output: Buffer.concat(output).toString() };
}

test("a process over the memory limit is killed and counted, and no other", options, async () => {
  await using here = scene();
  const before = here.groups.oomKills();
  const hog = `python3 -c 'x = bytearray(256 << 20)'; echo "code $?"`;
  const { output } = await runInside(here.groups, hog);
  assert.match(output, /code 137/);
  assert.equal(here.groups.oomKills(), before + 1);
  assert.ok(here.groups.oomFile !== null && readFileSync(here.groups.oomFile, "utf8").includes("oom_kill 1"));
});

test("no more processes start than the limit allows", options, async () => {
  await using here = scene();
  const fork = `
import os, signal
children = []
try:
  for _ in range(100):
    child = os.fork()
    if child == 0: signal.pause()
    children.append(child)
except BlockingIOError: pass
for child in children: os.kill(child, signal.SIGKILL)
print(len(children))`;
  const { output } = await runInside(here.groups, `exec python3 -c '${fork}'`);
  const started = Number(output.trim());
  assert.ok(started > 8 && started < limits.pidsMax, output);
});

test("a busy process gets no more processor time than the limit", options, async () => {
  await using here = scene();
  const spin =
    "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\nprint(time.process_time())";
  const { output } = await runInside(here.groups, `python3 -c "${spin}"`);
  assert.ok(Number(output) < limits.cpuCores * 1.3, output);
});

test(
  "killAll() ends every process, also in groups of commands, and remove() then takes all groups away",
  options,
  async () => {
    await using here = scene();
    const command = join(here.groups.commandsDirectory, "c000000000001");
    mkdirSync(command);
    const child = startInside(here.groups, "sleep 300 & echo started; sleep 300");
    await once(child.stdout, "data");
    const other = spawn("sleep", ["300"]);
    writeFileSync(join(command, "cgroup.procs"), String(other.pid));
    assert.ok(here.groups.populated());
    const ends = Promise.all([once(child, "close"), once(other, "close")]);
    here.groups.killAll();
    await ends;
    await here.groups.remove(signal);
    assert.ok(!here.groups.populated());
    assert.deepEqual(here.cgroups.list(), []);
    await here.groups.remove(signal);
  },
);

test("remove() takes back the memory that files left charged", options, async () => {
  await using here = scene();
  await runInside(
    here.groups,
    "head -c 20000000 /dev/zero > /var/tmp/dsec-cgroup-test; rm /var/tmp/dsec-cgroup-test",
  );
  await here.groups.remove(signal);
  assert.equal(here.groups.memoryBytes(), 0);
});

test(
  "adopt() gives the groups of a sandbox that another edge made, and list() names it",
  options,
  async () => {
    await using here = scene();
    assert.deepEqual(here.cgroups.list(), [here.id]);
    const adopted = here.cgroups.adopt(here.cgroups.list()[0] ?? assert.fail());
    assert.deepEqual(adopted.runnerProcs, here.groups.runnerProcs);
    const child = startInside(here.groups, "echo started; sleep 300");
    await once(child.stdout, "data");
    assert.ok(adopted.populated());
    assert.ok(adopted.memoryBytes() > 0);
    const ended = once(child, "close");
    adopted.killAll();
    assert.deepEqual(await ended, [null, "SIGKILL"]);
  },
);
