import { chownSync, mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "./process.ts";

const removeTimeoutMs = 600_000;

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

/** Removes the directory of a sandbox with everything in it, whoever owns it; links are never followed. */
export async function removeUpper(directory: string): Promise<void> {
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
