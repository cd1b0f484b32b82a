import { type DsecClient, DsecError } from "@dsec/sdk";
import { createRun, type LiveRun, measureExec, type RunReport, runAttempt } from "./attempt.ts";
import { memoryAvailableMib } from "./memory.ts";
import type { PlannedRun } from "./plan.ts";

export interface JobOptions {
  readonly runs: readonly PlannedRun[];
  /** Workspace layer by task. */
  readonly layers: ReadonlyMap<string, string>;
  /** Name of the job on the platform. */
  readonly job: string;
  readonly progress: (line: string) => void;
}

/** What the runs of a job gave. */
export interface JobResult {
  /** In the order of the plan. */
  readonly reports: readonly RunReport[];
  readonly memoryMibPerSandbox: number | null;
  readonly seconds: number;
}

/**
 * Creates all sandboxes at once, lets every attempt and its test command run at once, and stops each sandbox after its test. When
 * it returns or throws, no sandbox of the job is left. Throws only when the signal aborts.
 */
export async function runJob(
  client: DsecClient,
  options: JobOptions,
  signal: AbortSignal,
): Promise<JobResult> {
  const { runs, progress } = options;
  const startedAt = performance.now();
  const reports = new Map<number, RunReport>();
  await using held = new AsyncDisposableStack();

  progress(`creating ${runs.length} sandboxes`);
  const beforeMib = memoryAvailableMib();
  const settled = await Promise.all(
    runs.map(async (run): Promise<LiveRun | undefined> => {
      try {
        const layer = options.layers.get(run.task.name) ?? "";
        const live = await createRun(client, { run, layer, job: options.job }, signal);
        held.use(live.sandbox);
        return live;
      } catch (error) {
        reports.set(run.index, failedRun(run, "create", error));
        return undefined;
      }
    }),
  );
  const live = settled.filter((one) => one !== undefined);
  const usedMib = beforeMib - memoryAvailableMib();
  signal.throwIfAborted();

  progress(`running ${live.length} attempts and their tests`);
  const execTimes = await Promise.all(live.map((one) => measureExecOrNothing(one, signal)));
  let done = 0;
  await Promise.all(
    live.map(async (one, place) => {
      reports.set(one.run.index, await finishRun(one, execTimes[place], signal));
      done += 1;
      if (done % 8 === 0 || done === live.length) progress(`${done} of ${live.length} are through`);
    }),
  );
  signal.throwIfAborted();
  await held.disposeAsync();
  return {
    reports: runs.flatMap((run) => reports.get(run.index) ?? []),
    memoryMibPerSandbox: live.length === runs.length ? usedMib / runs.length : null,
    seconds: (performance.now() - startedAt) / 1000,
  };
}

async function finishRun(live: LiveRun, execMs: number | undefined, signal: AbortSignal): Promise<RunReport> {
  const { run, createMs } = live;
  try {
    const { verdict, reason } = await runAttempt(live, signal);
    await live.sandbox.stop();
    return { run, verdict, reason, createMs, execMs };
  } catch (error) {
    return { ...failedRun(run, "run", error), createMs, execMs };
  }
}

/** Undefined when it fails: the attempt right after it meets the same failure and reports it. */
async function measureExecOrNothing(live: LiveRun, signal: AbortSignal): Promise<number | undefined> {
  try {
    return await measureExec(live, signal);
  } catch (error) {
    if (error instanceof DsecError) return undefined;
    throw error;
  }
}

function failedRun(run: PlannedRun, step: string, error: unknown): RunReport {
  if (!(error instanceof DsecError)) throw error;
  const reason = `${step}: ${error.message} (${error.code})`;
  return { run, verdict: undefined, reason, createMs: undefined, execMs: undefined };
}
