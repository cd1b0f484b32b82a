import { join } from "node:path";

/** The entry of the `dsec` command. */
export const dsecMain: string = join(import.meta.dirname, "../main.ts");

export function controlArguments(config: string): readonly [string, ...string[]] {
  return [process.execPath, dsecMain, "control", "--config", config];
}

/** `end`: to end what an earlier edge left. */
export function edgeArguments(
  config: string,
  options: { readonly end: boolean },
): readonly [string, ...string[]] {
  return [process.execPath, dsecMain, "edge", "--config", config, ...(options.end ? ["--end"] : [])];
}
