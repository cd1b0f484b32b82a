import { readFileSync, statfsSync } from "node:fs";
import { availableParallelism } from "node:os";

/** What the node measures of itself: sizes in MiB, pressure as PSI "some avg10" in percent. */
export interface HostLoad {
  readonly memoryTotalMib: number;
  readonly memoryAvailableMib: number;
  readonly memoryPressure: number;
  readonly cpuPressure: number;
  readonly diskFreeMib: number;
  readonly cpuCores: number;
}

const mib = 1024 * 1024;

/** Reads /proc and the file system of `dataDir`; some tens of microseconds. Without PSI the pressures are 0. */
export function readLoad(dataDir: string): HostLoad {
  const memory = readFileSync("/proc/meminfo", "latin1");
  const disk = statfsSync(dataDir);
  return {
    memoryTotalMib: memoryField(memory, "MemTotal"),
    memoryAvailableMib: memoryField(memory, "MemAvailable"),
    memoryPressure: pressure("memory"),
    cpuPressure: pressure("cpu"),
    diskFreeMib: Math.floor((disk.bavail * disk.bsize) / mib),
    cpuCores: availableParallelism(),
  };
}

function memoryField(text: string, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1];
  if (kib === undefined) throw new Error(`/proc/meminfo has no ${name}`);
  return Math.floor(Number(kib) / 1024);
}

function pressure(resource: "memory" | "cpu"): number {
  let text: string;
  try {
    text = readFileSync(`/proc/pressure/${resource}`, "latin1");
  } catch {
    // A kernel without PSI.
    return 0;
  }
  return Number(/^some avg10=([0-9.]+)/m.exec(text)?.[1] ?? 0);
}
