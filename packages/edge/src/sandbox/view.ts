import { nodeOf, type Sandbox } from "@dsec/contracts";
import type { SandboxRecord } from "../ledger/records.ts";

/** A sandbox as the API shows it; `layers` and processes stay inside. */
export function viewOfRecord(record: SandboxRecord, idleExpiresAtMs: number | null): Sandbox {
  const { spec } = record;
  return {
    id: record.id,
    project: record.project,
    node: nodeOf(record.id),
    backend: spec.backend,
    state: record.state,
    end: record.end,
    message: record.message,
    environment: spec.environment,
    cpuCores: spec.cpuCores,
    memoryMib: spec.memoryMib,
    diskMib: spec.diskMib,
    pidsMax: spec.pidsMax,
    user: spec.user,
    labels: spec.labels,
    job: spec.job,
    idleTimeoutMs: record.idleTimeoutMs,
    createdAtMs: record.createdAtMs,
    idleExpiresAtMs,
    lifetimeExpiresAtMs: record.lifetimeExpiresAtMs,
    endedAtMs: record.endedAtMs,
  };
}
