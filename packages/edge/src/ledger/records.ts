import { Backend, Environment, Failure, type LayerId, Outcome, type SandboxId, User } from "@dsec/contracts";
import { parseJson } from "@dsec/kit";
import { type Static, Type } from "typebox";

/** What was promised for a sandbox: fixed at creation. */
export const SandboxSpec = Type.Object(
  {
    backend: Backend,
    environment: Environment,
    /** Resolved layers, lowest first. */
    layers: Type.Array(Type.Unsafe<LayerId>({ type: "string" })),
    cpuCores: Type.Number(),
    memoryMib: Type.Integer(),
    diskMib: Type.Integer(),
    pidsMax: Type.Integer(),
    user: User,
    env: Type.Record(Type.String(), Type.String()),
    labels: Type.Record(Type.String(), Type.String()),
    job: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
);
export type SandboxSpec = Static<typeof SandboxSpec>;

export const recordStates = ["creating", "running", "paused", "stopping", "stopped", "failed"] as const;
export type RecordState = (typeof recordStates)[number];

/** One sandbox as the ledger keeps it. Times are milliseconds since the epoch. */
export interface SandboxRecord {
  readonly id: SandboxId;
  readonly project: string;
  readonly state: RecordState;
  readonly spec: SandboxSpec;
  /** The init, once it was spawned; `startTime` as in /proc/<pid>/stat. */
  readonly pid: number | null;
  readonly startTime: number | null;
  readonly idBase: number | null;
  readonly idleTimeoutMs: number;
  readonly createdAtMs: number;
  readonly lifetimeExpiresAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly end: Failure | null;
  readonly message: string | null;
}

/** One command as the ledger keeps it. */
export interface CommandRecord {
  readonly sandboxId: SandboxId;
  readonly actionId: string;
  /** Null while only the intent is known. */
  readonly commandId: string | null;
  readonly requestDigest: string;
  readonly detached: boolean;
  readonly startedAtMs: number;
  readonly outcome: Outcome | null;
}

export interface IdempotencyEntry {
  readonly sandboxId: SandboxId;
  readonly requestDigest: string;
}

export type Row = Record<string, string | number | bigint | null | Uint8Array>;

export function sandboxOfRow(row: Row): SandboxRecord {
  return {
    id: text(row["id"]) as SandboxId,
    project: text(row["project"]),
    state: stateOf(text(row["state"])),
    spec: parseJson(SandboxSpec, text(row["spec"]), "ledger record"),
    pid: numberOrNull(row["pid"]),
    startTime: numberOrNull(row["start_time"]),
    idBase: numberOrNull(row["id_base"]),
    idleTimeoutMs: Number(row["idle_timeout_ms"]),
    createdAtMs: Number(row["created_at_ms"]),
    lifetimeExpiresAtMs: numberOrNull(row["lifetime_expires_at_ms"]),
    endedAtMs: numberOrNull(row["ended_at_ms"]),
    end: row["end"] === null ? null : (parseJson(Failure, text(row["end"]), "ledger record") as Failure),
    message: row["message"] === null ? null : text(row["message"]),
  };
}

export function commandOfRow(row: Row): CommandRecord {
  return {
    sandboxId: text(row["sandbox"]) as SandboxId,
    actionId: text(row["action_id"]),
    commandId: row["command_id"] === null ? null : text(row["command_id"]),
    requestDigest: text(row["request_digest"]),
    detached: row["detached"] === 1,
    startedAtMs: Number(row["started_at_ms"]),
    outcome: row["outcome"] === null ? null : parseJson(Outcome, text(row["outcome"]), "ledger record"),
  };
}

function text(value: Row[string] | undefined): string {
  if (typeof value !== "string") throw new TypeError("The ledger holds something else than text");
  return value;
}

function numberOrNull(value: Row[string] | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function stateOf(value: string): RecordState {
  const state = recordStates.find((each) => each === value);
  if (state === undefined) throw new TypeError(`The ledger holds the unknown state "${value}"`);
  return state;
}
