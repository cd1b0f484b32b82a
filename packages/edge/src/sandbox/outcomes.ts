import { type Cause, failureOf, type Outcome } from "@dsec/contracts";
import type { NativeOutcome } from "../chronus/operations.ts";
import type { EndReason } from "./lifecycle.ts";

const causes: Readonly<Record<NativeOutcome["cause"], Cause>> = {
  exit: "exit",
  signal: "signal",
  timeout: "timeout",
  oom: "oom",
  // Asked for by the caller.
  killed: "cancelled",
  agent_killed: "agent_killed",
  start_failed: "start_failed",
};

/** The facts of init with the blame that they imply. */
export function outcomeOf(native: NativeOutcome): Outcome {
  const cause = causes[native.cause];
  return {
    exitCode: native.exitCode,
    signal: native.signal,
    cause,
    failure: failureOf(cause),
    message: native.message,
    startedAtMs: native.startedAtMs,
    endedAtMs: native.endedAtMs,
    cpuMs: native.cpuMs,
    stdout: native.stdout,
    stderr: native.stderr,
    leftRunning: native.leftRunning,
  };
}

/** The outcome of a command that ended with its sandbox. A plain stop cancels it. */
export function outcomeOfSandboxEnd(startedAtMs: number, { end, message }: EndReason, atMs: number): Outcome {
  const failure = end ?? failureOf("cancelled");
  return {
    exitCode: null,
    signal: null,
    cause: failure.cause,
    failure,
    message: message ?? "The sandbox was stopped",
    startedAtMs,
    endedAtMs: atMs,
    cpuMs: null,
    stdout: { bytes: 0, dropped: 0 },
    stderr: { bytes: 0, dropped: 0 },
    leftRunning: false,
  };
}

/** Whether the command ran, and how it ended, nobody can tell any more. It is never run again. */
export function unknownOutcome(startedAtMs: number, atMs: number): Outcome {
  const end = failureOf("outcome_unknown");
  return outcomeOfSandboxEnd(startedAtMs, { end, message: "The outcome of the command was lost" }, atMs);
}
