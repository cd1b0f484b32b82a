import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { TestPlatform } from "@dsec/testkit";

/** The spawners of a platform's nodes: agents of the node that are in the host's pid namespace and wait for edges. */
export function findSpawners(platform: TestPlatform): readonly number[] {
  return agentsOf(platform).filter((pid) => innerPid(pid) === undefined && wordsOf(pid).includes("spawner"));
}

/** The inits of a platform's nodes: agents that are pid 1 of a namespace of their own. */
export function findInits(platform: TestPlatform): readonly number[] {
  return agentsOf(platform).filter((pid) => innerPid(pid) === 1);
}

/** Kills a process and resolves when it is gone or waits to be reaped. */
export async function killProcess(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await until(
    () =>
      /^State:\s+[ZX]/m.test(readOrNothing(`/proc/${pid}/status`)) ||
      readOrNothing(`/proc/${pid}/status`) === "",
  );
}

/** Resolves when the condition holds; fails after `msMax`. For things that the kernel tells nobody about. */
export async function until(holds: () => boolean | Promise<boolean>, msMax = 15_000): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `not so within ${msMax} ms: ${String(holds)}`);
    await delay(20);
  }
}

/** Processes of the agents groups of the platform's nodes. */
function agentsOf({ state }: TestPlatform): readonly number[] {
  const groups = state.edges.map(({ nodeId }) => `/dsec/${nodeId}/agents`);
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => groups.some((group) => readOrNothing(`/proc/${name}/cgroup`).includes(group)))
    .map(Number);
}

/** The pid in the process's own namespace; undefined when that is the host's. */
function innerPid(pid: number): number | undefined {
  const pids = /^NSpid:\s+(.*)$/m.exec(readOrNothing(`/proc/${pid}/status`))?.[1]?.split("\t") ?? [];
  return pids.length > 1 ? Number(pids.at(-1)) : undefined;
}

function wordsOf(pid: number): readonly string[] {
  return readOrNothing(`/proc/${pid}/cmdline`).split("\0");
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // The process ended since it was found.
  }
}
