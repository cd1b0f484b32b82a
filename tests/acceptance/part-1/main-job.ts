import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lastWords, type ProgramReport, repository, runProgram } from "../run-program.ts";

/** The last line of `npm start -- --json`. */
export interface JobLine {
  readonly sandboxes: number;
  readonly asPlanned: number;
  readonly passRateByTask: Readonly<Record<string, number>>;
  readonly createMs: { readonly p50: number; readonly p99: number };
  readonly execMs: { readonly p50: number; readonly p99: number };
  readonly memoryMibPerSandbox: number;
  readonly seconds: number;
  readonly leaks: number;
}

/**
 * Runs `npm start -- --json` with more words, on a platform of its own even when one is up on this machine. `cwd` is a
 * clone of the repository; this one when not given.
 */
export async function runMainJob(
  words: readonly string[],
  options: { readonly cwd?: string; readonly signal: AbortSignal },
): Promise<{ readonly report: ProgramReport; readonly job: JobLine }> {
  const runDir = mkdtempSync(join(tmpdir(), "dsec-accept-run-"));
  try {
    const report = await runProgram(["npm", "start", "--", "--json", ...words], {
      cwd: options.cwd ?? repository,
      env: { DSEC_RUN_DIR: runDir },
      signal: options.signal,
    });
    return { report, job: lastLine(report) };
  } finally {
    rmSync(runDir, { recursive: true, force: true });
  }
}

/** The shape of a JSON value: names at each level, the kind of each leaf; `tasks` for the open record of pass rates. */
export function shapeOf(job: object): string {
  const describe = (value: unknown): unknown =>
    typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, describe(inner)]))
      : typeof value;
  const shape = describe({ ...job, passRateByTask: "" });
  return JSON.stringify({
    ...(shape as object),
    passRateByTask: kindOfRates(Reflect.get(job, "passRateByTask")),
  });
}

export const jobShape = JSON.stringify({
  sandboxes: "number",
  asPlanned: "number",
  passRateByTask: "rates",
  createMs: { p50: "number", p99: "number" },
  execMs: { p50: "number", p99: "number" },
  memoryMibPerSandbox: "number",
  seconds: "number",
  leaks: "number",
});

function kindOfRates(rates: unknown): string {
  const isRecord = typeof rates === "object" && rates !== null;
  const values: unknown[] = isRecord ? Object.values(rates) : [];
  return values.length > 0 && values.every((rate) => typeof rate === "number" && rate >= 0 && rate <= 1)
    ? "rates"
    : "no rates";
}

function lastLine(report: ProgramReport): JobLine {
  const line = report.stdout.trimEnd().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line) as JobLine;
  } catch (cause) {
    throw new assert.AssertionError({ message: `npm start: ${lastWords(report)}`, actual: cause });
  }
}
