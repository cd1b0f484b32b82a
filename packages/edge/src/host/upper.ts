import { chownSync, mkdirSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "./process.ts";

const removeTimeoutMs = 600_000;
const fewEntries = 64;

/** The writable part of a sandbox's root, as absolute paths. */
export interface Upper {
  readonly upper: string;
  readonly work: string;
}

/**
 * Makes the writable part under `directory`, owned by the sandbox's root. The root of the upper is 0755: an image's own root mode does not matter then.
 * A plain directory so far: `diskMib` binds once a quota driver exists (capability `diskQuota`).
 */
export function createUpper(directory: string, idBase: number): Upper {
  const upper = join(directory, "upper");
  const work = join(directory, "work");
  mkdirSync(upper, { mode: 0o755 });
  mkdirSync(work, { mode: 0o700 });
  chownSync(upper, idBase, idBase);
  chownSync(work, idBase, idBase);
  return { upper, work };
}

/**
 * Removes the directory of a sandbox with everything in it, whoever owns it; links are never followed. All processes of the sandbox are gone, so that nothing
 * changes meanwhile. A few entries, which is all that most sandboxes leave, go at once: a tenth of the work of a removal in the background.
 */
export async function removeUpper(directory: string): Promise<void> {
  if (removedAtOnce(directory)) return;
  try {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  } catch (error) {
    // A tree deeper than the longest path, which only descending step by step removes.
    if ((error as NodeJS.ErrnoException).code !== "ENAMETOOLONG") throw error;
    await runProgram(["rm", "-rf", "--one-file-system", "--", directory], {
      signal: AbortSignal.timeout(removeTimeoutMs),
    });
  }
}

function removedAtOnce(directory: string): boolean {
  try {
    return removeFew(directory, { left: fewEntries });
  } catch {
    // Too deep a path, or a file system that is busy: what follows tries harder, and reports.
    return false;
  }
}

/** Removes depth first, as long as entries are left to remove; false when there were more. */
function removeFew(directory: string, budget: { left: number }): boolean {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (budget.left === 0) return false;
    budget.left -= 1;
    const path = join(directory, entry.name);
    if (!entry.isDirectory()) unlinkSync(path);
    else if (!removeFew(path, budget)) return false;
  }
  rmdirSync(directory);
  return true;
}
