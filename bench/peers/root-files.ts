import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { environmentOfSystem } from "./packages.ts";
import { runProgram } from "./program.ts";

const programs = ["/bin/true", "/bin/sleep"] as const;

/**
 * Makes the smallest root file system that peers can run `true` in: two programs and their libraries. Smaller than the
 * platform's base layer, so a comparison errs in favour of the peer.
 */
export async function makeRootFiles(directory: string, signal: AbortSignal): Promise<void> {
  for (const folder of ["proc", "dev", "sys", "etc", "tmp", "bin"]) {
    await mkdir(join(directory, folder), { recursive: true });
  }
  const files = new Set<string>(programs);
  for (const program of programs) {
    const listed = await runProgram(["ldd", program], { env: environmentOfSystem(), signal });
    for (const match of listed.matchAll(/(?:=> |^\t)(\/\S+)/gm)) {
      if (match[1] !== undefined) files.add(match[1]);
    }
  }
  for (const file of files) {
    const target = join(directory, file);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(file, target);
  }
}
