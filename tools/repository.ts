import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Absolute path of the repository's root. */
export const repositoryRoot: string = join(import.meta.dirname, "..");

/** Text by path relative to the root: what a check looks at. A test hands over a small one of its own. */
export type Sources = ReadonlyMap<string, string>;

/**
 * The repository's files that git knows or would add, whose path matches, with their text. Throws if none does: a
 * check that saw nothing must not pass.
 */
export function readSources(matches: RegExp): Sources {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: repositoryRoot,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const paths = listed
    .split("\0")
    .filter((path) => matches.test(path) && existsSync(join(repositoryRoot, path)));
  if (paths.length === 0) throw new Error(`No file of the repository matches ${matches}`);
  return new Map(paths.map((path) => [path, readFileSync(join(repositoryRoot, path), "utf8")]));
}
