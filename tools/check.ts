// The gate: `npm run check`. Runs every step in order, prints name, time and result, and ends with 1 if any failed.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { type CheckStep, checkSteps, type StepReport } from "./check-steps.ts";
import { repositoryRoot } from "./repository.ts";

const outputLinesMax = 150;

const secondsOf = (startMs: number): string => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;

function runStep(step: CheckStep): StepReport {
  const [program, ...args] = step.argv;
  const child = spawnSync(program, args, {
    cwd: repositoryRoot,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, FORCE_COLOR: "0", NO_COLOR: "1" },
  });
  if (child.error) return { exitCode: 127, output: child.error.message };
  return { exitCode: child.status ?? 128, output: `${child.stdout}${child.stderr}` };
}

/** The end of a step's output: the summary of every tool stands there. */
function lastLines(output: string): string {
  const lines = output.trimEnd().split("\n");
  const omitted = lines.length - outputLinesMax;
  return omitted > 0 ? [`… ${omitted} lines before`, ...lines.slice(omitted)].join("\n") : lines.join("\n");
}

/** Why the step failed, or undefined when it passed: a bad exit code, or no sign that it looked at anything. */
export function failureOf(step: CheckStep, report: StepReport): string | undefined {
  if (report.exitCode !== 0) return `exit code ${report.exitCode}`;
  if (step.seen === undefined) return undefined;
  const seen = Number(step.seen.exec(report.output)?.[1] ?? 0);
  return seen > 0 ? undefined : "it looked at nothing";
}

function main(): number {
  const { values } = parseArgs({
    options: {
      static: { type: "boolean", default: false },
      "without-rust": { type: "boolean", default: false },
    },
  });
  const steps = checkSteps
    .filter((step) => !values.static || step.static)
    .filter((step) => !values["without-rust"] || step.argv[0] !== "cargo");
  const failed: string[] = [];
  const allStartMs = performance.now();
  for (const step of steps) {
    const startMs = performance.now();
    const report = runStep(step);
    const failure = failureOf(step, report);
    console.log(`${failure === undefined ? "pass" : "FAIL"}  ${step.name.padEnd(14)} ${secondsOf(startMs)}`);
    if (failure === undefined) continue;
    failed.push(`${step.name} (${failure})`);
    console.log(lastLines(report.output).replaceAll(/^/gm, "      "));
  }
  const verdict = failed.length === 0 ? "all passed" : `failed: ${failed.join(", ")}`;
  console.log(`check: ${steps.length} steps in ${secondsOf(allStartMs)}, ${verdict}`);
  return failed.length === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = main();
