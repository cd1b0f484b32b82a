// 500 create, exec, stop cycles leave nothing: no process, mount, cgroup, file or socket, and the daemons' memory stays flat.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { DsecClient } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";
import { clause, flag, sized } from "../report.ts";

const inFlight = 8;
const warmUps = 24;

test("create, exec, stop cycles leave nothing", { skip: reasonToSkip(), timeout: 900_000 }, async (t) => {
  const cycles = Number(flag("count", sized({ short: "60", full: "500", soak: "5000" })));
  await using platform = await startPlatform({ signal: t.signal });
  await runCycles(platform.client, warmUps);
  const before = lookAt(platform);
  const succeeded = await runCycles(platform.client, cycles);
  const after = lookAt(platform);
  t.diagnostic(JSON.stringify({ before, after }));

  const none = { equals: 0 } as const;
  await clause("cycles that succeeded", { limit: { equals: cycles }, measure: () => succeeded });
  await clause("things left by the cycles", {
    limit: none,
    measure: async () => {
      const leaks = await platform.leaks();
      for (const { what, evidence } of leaks) t.diagnostic(`left: ${what} (${evidence})`);
      return leaks.length;
    },
  });
  for (const name of ["processes", "mounts", "cgroups", "descriptors"] as const) {
    await clause(`more ${name} than before the cycles`, {
      limit: name === "descriptors" ? { atMost: 16 } : none,
      measure: () => Math.max(0, after[name] - before[name]),
    });
  }
  await clause("memory that control and edge grew by", {
    limit: { atMost: 96, unit: "MiB" },
    measure: () => after.daemonsMib - before.daemonsMib,
  });
  await clause("memory that the spawner grew by", {
    limit: { atMost: 2, unit: "MiB" },
    measure: () => after.spawnersMib - before.spawnersMib,
  });
});

/** How many of `count` cycles did what they should; at most `inFlight` at a time. */
async function runCycles(client: DsecClient, count: number): Promise<number> {
  const numbers = Array.from({ length: count }, (_, number) => number).values();
  let succeeded = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (const number of numbers) {
        await using sandbox = await client.sandboxes.create({ memoryMib: 128 });
        const { stdout } = await sandbox.exec(["echo", String(number)]);
        if (stdout === `${number}\n`) succeeded += 1;
      }
    }),
  );
  return succeeded;
}

interface HostLook {
  readonly processes: number;
  readonly mounts: number;
  readonly cgroups: number;
  readonly descriptors: number;
  readonly daemonsMib: number;
  readonly spawnersMib: number;
}

/** What the platform holds of the host, counted from /proc and /sys. */
function lookAt({ state, places }: TestPlatform): HostLook {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const own = pids.filter((pid) => readOrNothing(`/proc/${pid}/cmdline`).includes(places.runDir));
  const daemons = [state.control, ...state.edges].map(({ pid }) => String(pid));
  const spawners = own.filter((pid) => readOrNothing(`/proc/${pid}/cmdline`).includes("\0spawner\0"));
  assert.ok(spawners.length > 0, "no spawner was found");
  const nodes = state.edges.map(({ nodeId }) => nodeId);
  return {
    processes: own.length,
    mounts: own.reduce((sum, pid) => sum + readOrNothing(`/proc/${pid}/mountinfo`).split("\n").length, 0),
    cgroups: nodes.reduce((sum, node) => sum + countCgroups(node), 0),
    descriptors: [...daemons, ...spawners].reduce(
      (sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length,
      0,
    ),
    daemonsMib: sumOfMemory(daemons),
    spawnersMib: sumOfMemory(spawners),
  };
}

function sumOfMemory(pids: readonly string[]): number {
  return pids.reduce((sum, pid) => {
    const rss = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return sum + Number(rss?.[1]) / 1024;
  }, 0);
}

/** Groups of a node in every hierarchy. */
function countCgroups(node: string): number {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const mountPoints = lines.flatMap((line) => (/ - cgroup2? /.test(line) ? [line.split(" ")[4] ?? ""] : []));
  assert.ok(mountPoints.length > 0, "no cgroup file system is mounted");
  return mountPoints.reduce((sum, mountPoint) => sum + countFolders(`${mountPoint}/dsec/${node}`), 0);
}

function countFolders(path: string): number {
  try {
    const entries = readdirSync(path, { withFileTypes: true, recursive: true });
    return entries.filter((entry) => entry.isDirectory()).length;
  } catch {
    return 0; // This hierarchy has no group of the node.
  }
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // The process ended since the list was made.
  }
}
