import { join } from "node:path";

/** The entry of the `dsec` command. */
export const dsecMain: string = join(import.meta.dirname, "../main.ts");

/** MiB of V8's young generation: what a call allocates dies there instead of being marked by a major collection. */
const youngGeneration = "--max-semi-space-size=32";

export function controlArguments(config: string): readonly [string, ...string[]] {
  return [process.execPath, youngGeneration, dsecMain, "control", "--config", config];
}

/** `end`: to end what an earlier edge left. */
export function edgeArguments(
  config: string,
  options: { readonly end: boolean },
): readonly [string, ...string[]] {
  return [
    process.execPath,
    youngGeneration,
    dsecMain,
    "edge",
    "--config",
    config,
    ...(options.end ? ["--end"] : []),
  ];
}
