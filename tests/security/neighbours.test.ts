// Sandboxes do not see each other, and one that misbehaves does not disturb its neighbours.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";
import { shell } from "./probe.ts";

const skip = reasonToSkip();
const timeout = 120_000;
let platform: TestPlatform;
let one: Sandbox;
let other: Sandbox;
before(async () => {
  if (skip !== false) return;
  platform = await startPlatform();
  one = await platform.client.sandboxes.create({ memoryMib: 256 });
  other = await platform.client.sandboxes.create({ memoryMib: 256 });
});
after(async () => {
  await Promise.all([one?.stop(), other?.stop()]);
  await platform?.[Symbol.asyncDispose]();
});

test("files, processes, ports and queues of one are not in the other", { skip, timeout }, async () => {
  const connect = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null";
  await shell(
    one,
    [
      "for place in /root /tmp /dev/shm; do echo secret >$place/secret; done; echo changed >>/etc/hosts",
      "ipcmk -Q >/dev/null",
      "nohup sleep 4242 >/dev/null 2>&1 &",
      "nohup python3 -m http.server --bind 127.0.0.1 8123 >/dev/null 2>&1 &",
      `until ${connect}; do sleep 0.1; done`,
    ].join("\n"),
  );
  const look = [
    "cat /root/secret /tmp/secret /dev/shm/secret 2>/dev/null",
    "grep changed /etc/hosts",
    "ps -eo args | grep -E '^(sleep 4242|python3 -m http)'",
    "ipcs -q | grep 0x",
    `${connect} && echo connected`,
    "true",
  ].join("\n");
  assert.equal((await shell(one, look)).trimEnd().split("\n").length, 8);
  assert.equal(await shell(other, look), "");
});

test("two sandboxes share no user id on the host", { skip, timeout }, async () => {
  await Promise.all(
    [one, other].map(async (sandbox) => await sandbox.start(["bash", "-c", "exec -a uid-witness sleep 300"])),
  );
  const uids = await witnessUids(2);
  assert.ok(
    uids.every((uid) => uid >= 2 ** 28),
    `host ids ${uids.join(", ")} are below the platform's`,
  );
  assert.equal(new Set(uids.map((uid) => Math.floor(uid / 65_536))).size, 2);
});

test("a fork bomb stays within its sandbox, and everything can be killed", { skip, timeout }, async () => {
  await using bomb = await platform.client.sandboxes.create({ memoryMib: 256, pidsMax: 200 });
  const command = await bomb.start(["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60"]);
  await untilProcesses(bomb, 190);
  const startedAt = performance.now();
  assert.equal((await other.exec(["echo", "alive"])).stdout, "alive\n");
  assert.equal((await bomb.refresh()).state, "running");
  assert.ok(performance.now() - startedAt < 2_000, "the platform answers within 2 s");
  await command.kill();
  await command.outcome({ signal: AbortSignal.timeout(10_000) });
  assert.equal((await bomb.exec(["echo", "usable again"])).stdout, "usable again\n");
});

test("memory taken beyond the limit is the sandbox's own loss", { skip, timeout }, async () => {
  await using greedy = await platform.client.sandboxes.create({ memoryMib: 64 });
  const result = await greedy.exec(["python3", "-c", "x = [bytearray(1 << 20) for _ in range(4096)]"]);
  assert.deepEqual([result.outcome.cause, result.outcome.failure.maskable], ["oom", false]);
  assert.equal((await other.exec(["echo", "alive"])).stdout, "alive\n");
});

/** Waits until a sandbox has at least so many processes, as the host counts them. */
async function untilProcesses({ id }: Sandbox, wanted: number): Promise<void> {
  const deadline = performance.now() + 20_000;
  const isInside = (pid: string): boolean => readOrNothing(`/proc/${pid}/cgroup`).includes(id);
  for (;;) {
    const count = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isInside(name)).length;
    if (count >= wanted) return;
    assert.ok(performance.now() < deadline, `${count} processes instead of ${wanted}`);
    await delay(20);
  }
}

/** The host's user ids of the witnesses, once there are as many as wanted. */
async function witnessUids(wanted: number): Promise<readonly number[]> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isWitness(name));
    if (pids.length === wanted) return pids.map((pid) => statSync(`/proc/${pid}`).uid);
    assert.ok(performance.now() < deadline, `${pids.length} witnesses instead of ${wanted}`);
    await delay(20);
  }
}

function isWitness(pid: string): boolean {
  return readOrNothing(`/proc/${pid}/cmdline`).startsWith("uid-witness");
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return ""; // The process ended since the list was made.
  }
}
