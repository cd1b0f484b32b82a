import type { SandboxId } from "@dsec/contracts";
import type { Log } from "@dsec/kit";
import type { ContainerBackend } from "../backends/container/backend.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SandboxRecord } from "../ledger/records.ts";
import { type EndedBefore, planRecovery } from "../ledger/recover.ts";
import { outcomeOfSandboxEnd, unknownOutcome } from "./outcomes.ts";
import type { Sandboxes } from "./sandboxes.ts";

export interface RecoveryParts {
  readonly ledger: Ledger;
  readonly backend: ContainerBackend;
  readonly sandboxes: Sandboxes;
  readonly log: Log;
}

export interface RecoveryReport {
  readonly adopted: number;
  readonly ended: number;
  readonly removed: number;
}

const together = 32;

/**
 * Brings ledger and host to one truth before anything is served: adopts what lives, ends what is gone, removes what nobody promised.
 * An action whose outcome is lost is `outcome_unknown`; nothing is run again.
 */
export async function recover(parts: RecoveryParts, signal: AbortSignal): Promise<RecoveryReport> {
  const { ledger, backend, sandboxes, log } = parts;
  const plan = planRecovery(ledger.unendedSandboxes(), {
    ids: backend.traces(),
    isAlive: ({ pid, startTime }) => pid !== null && startTime !== null && backend.isAlive(pid, startTime),
  });
  await inGroups(plan.adopt, async (record) => adopt(parts, record));
  await backend.endOrphans(({ pid }) => sandboxes.isInit(pid), signal);
  await inGroups(plan.end, async (ended) => end(parts, ended));
  await inGroups(plan.remove, async (id) => remove(parts, id));
  const report = { adopted: plan.adopt.length, ended: plan.end.length, removed: plan.remove.length };
  log.info(report, "node recovered");
  return report;
}

async function adopt({ backend, sandboxes, log }: RecoveryParts, record: SandboxRecord): Promise<void> {
  const { id, spec, pid, startTime, idBase } = record;
  if (pid === null || startTime === null || idBase === null)
    throw new Error(`record of ${id} has no process`);
  const sandbox = sandboxes.adopt(record);
  const container = await backend.adopt(
    { id, layers: spec.layers, limits: spec },
    { pid, startTime, idBase },
  );
  try {
    await sandbox.resume(container);
  } catch (error) {
    log.error({ err: error, sandboxId: id }, "cannot adopt a sandbox");
    sandbox.initGone();
  }
}

async function end({ backend, ledger, log }: RecoveryParts, ended: EndedBefore): Promise<void> {
  const { record, state } = ended;
  const { id, pid, startTime } = record;
  const init = pid === null || startTime === null ? undefined : { pid, startTime };
  await attempt(backend, log, id, init);
  const atMs = Date.now();
  for (const command of ledger.commands.open(id)) {
    const { startedAtMs } = command;
    const outcome =
      record.state === "stopping"
        ? outcomeOfSandboxEnd(startedAtMs, ended, atMs)
        : unknownOutcome(startedAtMs, atMs);
    await ledger.commands.setOutcome(id, command, outcome);
  }
  if (record.state === "creating") await ledger.forgetKeysOf(id);
  await ledger.updateSandbox(id, { state, end: ended.end, message: ended.message, endedAtMs: atMs });
}

async function remove({ backend, log }: RecoveryParts, id: SandboxId): Promise<void> {
  log.warn({ sandboxId: id }, "removing traces of an unknown sandbox");
  await attempt(backend, log, id, undefined);
}

/** What cannot be removed now must not keep the node from serving: it is tried again in the background. */
async function attempt(
  backend: ContainerBackend,
  log: Log,
  id: SandboxId,
  init: { readonly pid: number; readonly startTime: number } | undefined,
): Promise<void> {
  try {
    await backend.removeTraces(id, init);
  } catch (error) {
    log.error({ err: error, sandboxId: id }, "cannot remove traces of a sandbox");
    backend.removeLater(id, undefined);
  }
}

async function inGroups<Item>(items: readonly Item[], action: (item: Item) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += together) {
    await Promise.all(items.slice(at, at + together).map(action));
  }
}
