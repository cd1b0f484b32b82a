import { readFileSync } from "node:fs";

/** Memory that could be used without swapping, in MiB, as the kernel estimates it. */
export function memoryAvailableMib(): number {
  return memoryAvailableOf(readFileSync("/proc/meminfo", "utf8"));
}

/** The same from the text of /proc/meminfo. */
export function memoryAvailableOf(text: string): number {
  const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1];
  if (kib === undefined) throw new Error("/proc/meminfo does not say MemAvailable");
  return Number(kib) / 1024;
}
