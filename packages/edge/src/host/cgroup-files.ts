import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isSandboxId, type SandboxId } from "@dsec/contracts";
import { wait } from "@dsec/kit";

/** What both versions of the interface share: groups are directories, settings are files. */

/** Makes a group and those above it. */
export function makeGroup(path: string): void {
  mkdirSync(path, { recursive: true });
}

export function setting(group: string, file: string, value: string | number): void {
  writeFileSync(join(group, file), String(value));
}

/** The number in a file, or after `key` in a flat keyed file; 0 when file or key is absent. */
export function readNumber(group: string, file: string, key?: string): number {
  let text: string;
  try {
    text = readFileSync(join(group, file), "latin1");
  } catch {
    // The group is gone, or this kernel has no such file.
    return 0;
  }
  if (key === undefined) return Number(text.trim());
  return Number(new RegExp(`^${key} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

/** Whether a process is in the group or below it; false when there is no group. Only on v2. */
export function isPopulated(group: string): boolean {
  return readNumber(group, "cgroup.events", "populated") === 1;
}

/** The sandboxes that have a group directly below `directory`. */
export function sandboxGroups(directory: string): SandboxId[] {
  try {
    return readdirSync(directory).filter((name) => isSandboxId(name)) as SandboxId[];
  } catch {
    // No sandbox ever lived here.
    return [];
  }
}

const removePauseMsMax = 20;
const removeTimeoutMs = 2_000;

/**
 * Removes a group and those below it, waiting up to two seconds for the last processes to be reaped. No group is success; a group
 * that stays busy throws EBUSY.
 */
export async function removeGroup(path: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + removeTimeoutMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, removePauseMsMax)) {
    try {
      removeTree(path);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return;
      if (code !== "EBUSY" || performance.now() > deadlineMs) throw error;
    }
    await wait(pauseMs, signal);
    signal.throwIfAborted();
  }
}

/** Groups without children go by one call each; only others are looked into. */
function removeTree(path: string): void {
  try {
    rmdirSync(path);
    return;
  } catch (error) {
    // EBUSY: it has children, or processes, which the second attempt below tells apart.
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(path, entry.name));
  }
  rmdirSync(path);
}

/** Removes the group `dsec` above a node's, unless another node of this host still has groups in it. */
export function removeParent(nodeGroup: string): void {
  try {
    rmdirSync(dirname(nodeGroup));
  } catch {
    // Another node's, or gone already.
  }
}
