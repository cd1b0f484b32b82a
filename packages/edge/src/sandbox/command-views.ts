import { type Command, PlatformError, type SandboxId } from "@dsec/contracts";
import type { CommandLog } from "../ledger/command-log.ts";
import type { CommandRecord } from "../ledger/records.ts";

/** The commands of a sandbox, alive or not, in order of their start. */
export function listCommands(
  log: CommandLog,
  sandboxId: SandboxId,
  idOf: (actionId: string) => string | undefined = () => undefined,
): Command[] {
  return log.list(sandboxId).flatMap((record) => {
    const commandId = record.commandId ?? idOf(record.actionId);
    return commandId === undefined ? [] : [viewOf(record, commandId)];
  });
}

/** Throws `not_found`. */
export function getCommand(log: CommandLog, sandboxId: SandboxId, commandId: string): Command {
  const record = log.byId(sandboxId, commandId);
  if (record === undefined) throw new PlatformError("not_found", `Cannot find command "${commandId}"`);
  return viewOf(record, commandId);
}

/** A command of the ledger as the API shows it. */
export function viewOf(record: CommandRecord, commandId: string): Command {
  const { actionId, startedAtMs, outcome } = record;
  return {
    commandId,
    actionId,
    replay: false,
    state: outcome === null ? "running" : "ended",
    startedAtMs,
    outcome,
  };
}
