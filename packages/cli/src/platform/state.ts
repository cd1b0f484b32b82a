import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { parseJson } from "@dsec/kit";
import { type Static, Type } from "typebox";
import { filesOf } from "./places.ts";
import { isRunning } from "./processes.ts";

const strict = { additionalProperties: false } as const;
const identity = { pid: Type.Integer({ minimum: 1 }), startTime: Type.Integer() } as const;

/** A control or edge process of a platform. */
export const DaemonState = Type.Object({ ...identity, config: Type.String(), log: Type.String() }, strict);
export const EdgeState = Type.Object(
  { ...identity, config: Type.String(), log: Type.String(), nodeId: Type.String() },
  strict,
);
export type EdgeState = Static<typeof EdgeState>;

/** `up.json` (mode 0600): the platform that `dsec up` started. The SDK reads `url` and `keyFile`. */
export const UpState = Type.Object(
  {
    formatVersion: Type.Literal(1),
    url: Type.String(),
    clusterUrl: Type.String(),
    keyFile: Type.String(),
    runDir: Type.String(),
    dataDir: Type.String(),
    layersDir: Type.String(),
    startedAtMs: Type.Integer(),
    control: DaemonState,
    edges: Type.Array(EdgeState),
  },
  strict,
);
export type UpState = Static<typeof UpState>;

/** The state in a run directory; undefined when no platform was started there. */
export function readState(runDir: string): UpState | undefined {
  let text: string;
  try {
    text = readFileSync(filesOf(runDir).up, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  return parseJson(UpState, text, `state file ${filesOf(runDir).up}`);
}

/** Replaces the state as a whole. */
export function writeState(state: UpState): void {
  const { up } = filesOf(state.runDir);
  writeFileSync(`${up}.new`, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${up}.new`, up);
}

export function removeState(runDir: string): void {
  rmSync(filesOf(runDir).up, { force: true });
}

/** Whether every process of the platform runs. */
export function isWhole(state: UpState): boolean {
  return isRunning(state.control) && state.edges.length > 0 && state.edges.every(isRunning);
}
