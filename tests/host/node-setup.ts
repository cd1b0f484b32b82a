import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Claim, CreateSandbox, Exec, NodeId, StartCommand } from "@dsec/contracts";
import { EdgeConfig } from "@dsec/edge";
import { loadConfig } from "@dsec/kit";

/** Where a node of a test keeps its things. */
export interface NodeSetup {
  readonly nodeId: NodeId;
  readonly dataDir: string;
  readonly runDir: string;
}

export const asker: Pick<Claim, "project" | "admin"> = { project: "prtest", admin: false };

export const chronusPath =
  process.env["DSEC_CHRONUS"] ??
  join(import.meta.dirname, "../../native/chronus/target/x86_64-unknown-linux-gnu/release/chronus");

/** Why a test of a node cannot run here; false when it can. */
export const reasonToSkip =
  process.getuid?.() !== 0 ? "needs root" : !existsSync(chronusPath) && "needs the release build of chronus";

export const sandboxRequest: CreateSandbox = {
  cpuCores: 1,
  memoryMib: 64,
  diskMib: 64,
  pidsMax: 64,
  idleTimeoutMs: 900_000,
};

export function nodeConfig({ dataDir, runDir }: NodeSetup): EdgeConfig {
  return loadConfig(EdgeConfig, {
    overrides: {
      dataDir,
      runDir,
      chronusPath,
      ensureDefaultBase: false,
      memoryPressureMax: 100,
      diskReserveMib: 0,
    },
  });
}

export function startRequest(shell: string): StartCommand {
  return { shell, timeoutMs: 60_000, noNewPrivs: false, endTree: false, detached: false };
}

export function execRequest(shell: string): Exec {
  return { ...startRequest(shell), outputBytesMax: 100_000 };
}
