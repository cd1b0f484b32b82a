import { type Failure, failureOf, type SandboxId } from "@dsec/contracts";
import type { SandboxRecord } from "./records.ts";

/** What the host shows of one sandbox of this node at start. */
export interface HostTraces {
  /** Something of it exists: a group, a directory or a socket. */
  readonly ids: ReadonlySet<SandboxId>;
  /** The init of this record is the same living process. */
  readonly isAlive: (record: SandboxRecord) => boolean;
}

export interface EndedBefore {
  readonly record: SandboxRecord;
  readonly state: "stopped" | "failed";
  readonly end: Failure | null;
  readonly message: string | null;
}

export interface RecoveryPlan {
  /** Alive and promised: taken over. */
  readonly adopt: readonly SandboxRecord[];
  /** Promised, but gone or half made: their end is written, what is left of them is removed. */
  readonly end: readonly EndedBefore[];
  /** Traces that no record explains: removed. */
  readonly remove: readonly SandboxId[];
}

/** Compares what the ledger promised with what the host shows. Pure; the sandbox service applies the plan. */
export function planRecovery(records: readonly SandboxRecord[], host: HostTraces): RecoveryPlan {
  const adopt: SandboxRecord[] = [];
  const end: EndedBefore[] = [];
  for (const record of records) {
    if ((record.state === "running" || record.state === "paused") && host.isAlive(record)) adopt.push(record);
    else end.push(endOf(record));
  }
  const known = new Set(records.map((record) => record.id));
  return { adopt, end, remove: [...host.ids].filter((id) => !known.has(id)) };
}

function endOf(record: SandboxRecord): EndedBefore {
  switch (record.state) {
    case "creating":
      return {
        record,
        state: "failed",
        end: failureOf("internal"),
        message: "The node's daemon ended while the sandbox was created",
      };
    case "stopping":
      // The reason of the end was written when stopping began.
      return { record, state: stateAfter(record.end), end: record.end, message: record.message };
    case "running":
    case "paused":
      return {
        record,
        state: "failed",
        end: failureOf("agent_unreachable"),
        message: "The sandbox ended while the node's daemon was away",
      };
    case "stopped":
    case "failed":
      return { record, state: record.state, end: record.end, message: record.message };
    default:
      return record.state satisfies never;
  }
}

/** A sandbox that ended as its owner or its limits wanted is stopped; any other end is a failure. */
export function stateAfter(end: Failure | null): "stopped" | "failed" {
  if (end === null) return "stopped";
  return end.cause === "idle_expired" || end.cause === "lifetime_expired" || end.cause === "cancelled"
    ? "stopped"
    : "failed";
}
