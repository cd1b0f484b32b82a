import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SeenMount } from "./snapshot.ts";

/** Files of the platform that are listed at most; far more than a healthy host has. */
const filesMax = 500_000;

/** Every cgroup of every hierarchy in `mounts`, as a path of the mounted directory. */
export function listCgroups(mounts: readonly SeenMount[]): string[] {
  const roots = mounts
    .filter((mount) => mount.type === "cgroup" || mount.type === "cgroup2")
    .map((mount) => mount.mountPoint);
  const paths: string[] = [];
  const pending = [...new Set(roots)];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const entry of entriesOf(directory)) {
      if (!entry.isDirectory()) continue;
      const path = join(directory, entry.name);
      paths.push(path);
      pending.push(path);
    }
  }
  return paths.toSorted();
}

/** Everything below `directories`; links are not followed, and an absent directory is empty. */
export function listFiles(directories: readonly string[]): { paths: string[]; truncated: boolean } {
  const paths: string[] = [];
  const pending = [...directories];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const entry of entriesOf(directory)) {
      if (paths.length >= filesMax) return { paths: paths.toSorted(), truncated: true };
      const path = join(directory, entry.name);
      paths.push(path);
      if (entry.isDirectory()) pending.push(path);
    }
  }
  return { paths: paths.toSorted(), truncated: false };
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    // Removed meanwhile, or never made.
    return [];
  }
}
