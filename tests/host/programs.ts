import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** The programs that are not found on a search path: the reason why a test cannot run here. */
export function missingPrograms(names: readonly string[], searchPath: string): string[] {
  const folders = searchPath.split(delimiter);
  return names.filter((name) => !folders.some((folder) => isExecutable(join(folder, name))));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Not there, or not to be executed: both mean that this is not the program.
    return false;
  }
}
