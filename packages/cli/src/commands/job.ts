import { join } from "node:path";
import { randomBase32 } from "@dsec/contracts";
import { DsecClient } from "@dsec/sdk";
import {
  type CliCommand,
  exitCodes,
  print,
  printJson,
  readArguments,
  tell,
  UsageError,
  wholeNumber,
} from "../command-line.ts";
import { type PlannedRun, planRuns } from "../job/plan.ts";
import { type JobResult, runJob } from "../job/run-job.ts";
import { describeReports, describeSummary, isSuccess, summarizeJob } from "../job/summary.ts";
import { loadTasks } from "../job/task-folder.ts";
import { ensureWorkspaces } from "../job/workspaces.ts";
import { readKey } from "../platform/key-file.ts";
import { findLeaks } from "../platform/leaks.ts";
import { openPlatformForJob } from "../platform/open-platform.ts";
import type { UpState } from "../platform/state.ts";

const options = {
  tasks: { type: "string" },
  attempts: { type: "string" },
  keep: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

const attemptsMax = 1_000;
const defaultTasks = join(import.meta.dirname, "../../../../examples/tasks");

export const command: CliCommand = {
  name: "job",
  summary: "run the main job: tasks, scripted attempts, verdicts",
  help: `dsec job [--tasks DIR] [--attempts N] [--keep] [--json]

Runs a folder of tasks, every attempt in a sandbox of its own, all at once: create from base and workspace, run the
attempt, run the test command, stop. The exit code of the test command inside is the verdict. Uses the platform of
this machine, or one of its own for as long as the job takes.

  --tasks DIR   folder of tasks (default: examples/tasks of the repository)
  --attempts N  attempts of each task; its own are repeated or cut off (default: all that it has)
  --keep        leave the platform running afterwards
  --json        last line of stdout: {sandboxes, asPlanned, passRateByTask, createMs, execMs, memoryMibPerSandbox,
                seconds, leaks}; execMs is that of one \`true\` in each sandbox while all live

Exit codes: 0 everything as planned; 1 a verdict differs from its plan or something was left behind; 2 wrong usage;
125 the platform failed; 130 ended by Ctrl-C.
`,
  async run({ args, signal }) {
    const { values, positionals } = readArguments(args, options);
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not an option`);
    const attempts =
      values.attempts === undefined
        ? undefined
        : wholeNumber("attempts", values.attempts, { min: 1, max: attemptsMax });
    const runs = planRuns(await loadTasks(values.tasks ?? defaultTasks, signal), attempts);
    return await runAndReport(runs, { keep: values.keep, json: values.json }, signal);
  },
};

async function runAndReport(
  runs: readonly PlannedRun[],
  { keep, json }: { readonly keep: boolean; readonly json: boolean },
  signal: AbortSignal,
): Promise<number> {
  await using held = new AsyncDisposableStack();
  const platform = held.use(await openPlatformForJob({ keep, progress: tell }, signal));
  const { state } = platform;
  const result = await runOn(state, runs, signal);
  const nodeIds = state.edges.map((edge) => edge.nodeId);
  await held.disposeAsync();
  const leaks = await findLeaks(platform.lookBefore, { places: state, nodeIds }, signal);

  const summary = summarizeJob(result.reports, { ...result, leaks: leaks.length });
  tell(`\n${describeReports(result.reports)}\n\n${describeSummary(summary)}`);
  for (const leak of leaks) tell(`LEFT BEHIND: ${leak.what} (${leak.evidence})`);
  tell(howToGoOn(platform.isLeft));
  if (json) printJson(summary);
  else print(isSuccess(summary) ? "as planned" : "NOT as planned");
  return isSuccess(summary) ? exitCodes.ok : exitCodes.failed;
}

async function runOn(state: UpState, runs: readonly PlannedRun[], signal: AbortSignal): Promise<JobResult> {
  await using client = new DsecClient({ url: state.url, key: readKey(state.keyFile) });
  tell("making workspaces");
  const tasks = [...new Set(runs.map((run) => run.task))];
  const layers = await ensureWorkspaces(client, tasks, signal);
  const job = `job-${randomBase32(8)}`;
  return await runJob(client, { runs, layers, job, progress: tell }, signal);
}

function howToGoOn(isLeft: boolean): string {
  const up = isLeft
    ? "The platform still runs; `npx dsec down` ends it."
    : "`npm start -- --keep` leaves the platform running.";
  return `\n${up} Then: \`npx dsec run -- python3 -c 'print(42)'\`, \`npx dsec ps\`, \`npx dsec --help\`.`;
}
