import type { CliCommand } from "./command-line.ts";

/** Loaded one by one, so that a command does not wait for the code of the others. */
const loaders: Readonly<Record<string, () => Promise<{ readonly command: CliCommand }>>> = {
  up: () => import("./commands/up.ts"),
  down: () => import("./commands/down.ts"),
  status: () => import("./commands/status.ts"),
  doctor: () => import("./commands/doctor.ts"),
  run: () => import("./commands/run.ts"),
  exec: () => import("./commands/exec.ts"),
  ps: () => import("./commands/ps.ts"),
  stop: () => import("./commands/stop.ts"),
  key: () => import("./commands/key.ts"),
  project: () => import("./commands/project.ts"),
  node: () => import("./commands/node.ts"),
  job: () => import("./commands/job.ts"),
  edge: () => import("./commands/edge.ts"),
  control: () => import("./commands/control.ts"),
};

/** In the order of `dsec --help`. */
export const commandNames: readonly string[] = Object.keys(loaders);

/** The command of that name; undefined when there is none. */
export async function loadCommand(name: string): Promise<CliCommand | undefined> {
  if (!Object.hasOwn(loaders, name)) return undefined;
  return (await loaders[name]?.())?.command;
}
