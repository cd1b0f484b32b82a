import { readFileSync } from "node:fs";
import { startTimeOf } from "./process-identity.ts";

/** An init of this node, found by what the kernel says, not by what the ledger does. */
export interface InitProcess {
  readonly pid: number;
  readonly startTime: number;
}

/**
 * The inits among the processes of the node's agents group: those whose parent is the spawner, or is no agent at all since their
 * spawner has ended. `agentsProcs` are the `cgroup.procs` files of that group.
 */
export function listInits(agentsProcs: readonly string[], spawnerPid: number | undefined): InitProcess[] {
  const [file] = agentsProcs;
  if (file === undefined) return [];
  const agents = new Set(readFileSync(file, "latin1").split("\n").filter(Boolean).map(Number));
  if (spawnerPid !== undefined) agents.delete(spawnerPid);
  return [...agents].flatMap((pid) => {
    const startTime = startTimeOf(pid);
    const parent = parentOf(pid);
    return startTime === undefined || parent === undefined || agents.has(parent) ? [] : [{ pid, startTime }];
  });
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    // It ended meanwhile.
    return undefined;
  }
}
