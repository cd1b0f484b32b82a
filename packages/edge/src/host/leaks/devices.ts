import { existsSync, readdirSync, readFileSync } from "node:fs";
import { firstReadable, membersOf } from "./mounts.ts";
import type { SeenDevice, SeenNetworkDevice, SeenProcess } from "./snapshot.ts";

/** The network devices of every network namespace that has a process. */
export function readNetworkDevices(processes: readonly SeenProcess[]): SeenNetworkDevice[] {
  const devices: SeenNetworkDevice[] = [];
  for (const [namespace, pids] of membersOf(processes, "net")) {
    const text = firstReadable(pids.map((pid) => `/proc/${pid}/net/dev`));
    for (const line of text.split("\n").slice(2)) {
      const name = /^\s*([^:\s]+):/.exec(line)?.[1];
      if (name !== undefined) devices.push({ namespace, name });
    }
  }
  return devices;
}

/** Loop devices that have a file, and every zram device. */
export function readBlockDevices(): SeenDevice[] {
  return readdirSync("/sys/block").flatMap((name) => {
    const device = readBlockDevice(name);
    return device === undefined ? [] : [device];
  });
}

function readBlockDevice(name: string): SeenDevice | undefined {
  const path = `/sys/block/${name}`;
  if (/^loop\d+$/.test(name)) {
    if (!existsSync(`${path}/loop/backing_file`)) return undefined;
    return { name, inUse: true, backing: readText(`${path}/loop/backing_file`) };
  }
  if (/^zram\d+$/.test(name)) {
    return { name, inUse: readText(`${path}/disksize`) !== "0", backing: null };
  }
  return undefined;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Released while it was read.
    return "";
  }
}
