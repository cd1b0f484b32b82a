import type { Outcome } from "@dsec/contracts";
import { type DsecClient, DsecError, type Sandbox } from "@dsec/sdk";
import type { PlannedRun } from "./plan.ts";
import type { Verdict } from "./task-toml.ts";

/** What came of one sandbox of the job. */
export interface RunReport {
  readonly run: PlannedRun;
  /** Undefined when the platform failed, so that the test command gave no answer. */
  readonly verdict: Verdict | undefined;
  /** Why there is no verdict, or how the test command ended. */
  readonly reason: string;
  readonly createMs: number | undefined;
  /** Of one `true`, while all sandboxes of the job live. */
  readonly execMs: number | undefined;
}

/** A sandbox of the job that lives. */
export interface LiveRun {
  readonly run: PlannedRun;
  readonly sandbox: Sandbox;
  readonly createMs: number;
}

/** Where a task's repository lies in its sandbox. */
export const workspacePath = "/workspace";

/** Creates the sandbox of a run. The caller stops it. */
export async function createRun(
  client: DsecClient,
  options: { readonly run: PlannedRun; readonly layer: string; readonly job: string },
  signal: AbortSignal,
): Promise<LiveRun> {
  const { run, layer, job } = options;
  const startedAt = performance.now();
  const sandbox = await client.sandboxes.create(
    {
      environment: { workspace: layer },
      job,
      labels: { task: run.task.name, attempt: run.attempt.name },
    },
    { signal },
  );
  return { run, sandbox, createMs: performance.now() - startedAt };
}

/** The time of one command that does nothing, in milliseconds. */
export async function measureExec(live: LiveRun, signal: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  const result = await live.sandbox.exec(["true"], { signal });
  if (!result.ok) throw new DsecError("internal", `true ended with ${describeEnd(result.outcome)}`);
  return performance.now() - startedAt;
}

/**
 * Runs the attempt, then the test command, whose exit code alone is the verdict: 0 is a pass, anything else and the time limit a
 * fail. An end that the platform is to blame for is no verdict. Throws DsecError when a call fails.
 */
export async function runAttempt(
  live: LiveRun,
  signal: AbortSignal,
): Promise<{ readonly verdict: Verdict | undefined; readonly reason: string }> {
  const { task, attempt } = live.run;
  const place = { cwd: workspacePath, timeoutMs: task.timeLimitMs, endTree: true, signal };
  const attempted = await live.sandbox.exec(["/bin/bash", "-s"], { ...place, stdin: attempt.script });
  if (attempted.outcome.failure.maskable) {
    return { verdict: undefined, reason: `attempt: ${describeEnd(attempted.outcome)}` };
  }
  const tested = await live.sandbox.exec(["/bin/sh", "-c", task.testCommand], place);
  const reason = describeEnd(tested.outcome);
  if (tested.outcome.failure.maskable) return { verdict: undefined, reason: `test command: ${reason}` };
  return { verdict: tested.ok ? "pass" : "fail", reason };
}

function describeEnd(outcome: Outcome): string {
  if (outcome.cause === "exit") return `exit code ${outcome.exitCode}`;
  const signal = outcome.signal === null ? "" : ` (signal ${outcome.signal})`;
  return `${outcome.cause}${signal}`;
}
