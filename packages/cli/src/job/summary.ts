import { formatTable } from "../command-line.ts";
import type { RunReport } from "./attempt.ts";

export interface Percentiles {
  readonly p50: number | null;
  readonly p99: number | null;
}

/** The last line of `dsec job --json`. Times in milliseconds but for `seconds`. */
export interface JobSummary {
  readonly sandboxes: number;
  /** How many verdicts are the expected ones. */
  readonly asPlanned: number;
  /** Passed runs of each task, as a part of 1. */
  readonly passRateByTask: Readonly<Record<string, number>>;
  readonly createMs: Percentiles;
  readonly execMs: Percentiles;
  /** (MemAvailable before the first sandbox - at all live) / sandboxes; null when some were not created. */
  readonly memoryMibPerSandbox: number | null;
  /** From the first creation to the last stop. */
  readonly seconds: number;
  /** What the job left on this host. */
  readonly leaks: number;
}

export function isAsPlanned(report: RunReport): boolean {
  return report.verdict === report.run.attempt.expected;
}

export function summarizeJob(
  reports: readonly RunReport[],
  measured: Pick<JobSummary, "memoryMibPerSandbox" | "seconds" | "leaks">,
): JobSummary {
  const tasks = [...new Set(reports.map((report) => report.run.task.name))];
  return {
    sandboxes: reports.length,
    asPlanned: reports.filter(isAsPlanned).length,
    passRateByTask: Object.fromEntries(tasks.map((task) => [task, passRate(reports, task)])),
    createMs: percentilesOf(reports.map((report) => report.createMs)),
    execMs: percentilesOf(reports.map((report) => report.execMs)),
    memoryMibPerSandbox:
      measured.memoryMibPerSandbox === null ? null : round(measured.memoryMibPerSandbox, 2),
    seconds: round(measured.seconds, 2),
    leaks: measured.leaks,
  };
}

/** Whether the job went as its plan says: every verdict as expected and nothing left behind. */
export function isSuccess(summary: JobSummary): boolean {
  return summary.sandboxes > 0 && summary.asPlanned === summary.sandboxes && summary.leaks === 0;
}

/** Verdicts beside expectations, for people. */
export function describeReports(reports: readonly RunReport[]): string {
  const rows = reports.map((report) => [
    report.run.task.name,
    report.run.task.language,
    report.run.attempt.name,
    report.run.attempt.expected,
    report.verdict ?? "none",
    isAsPlanned(report) ? "" : `NOT AS PLANNED: ${report.reason}`,
  ]);
  return formatTable([["TASK", "LANGUAGE", "ATTEMPT", "EXPECTED", "VERDICT", ""], ...rows]);
}

/** The numbers, for people. */
export function describeSummary(summary: JobSummary): string {
  const { createMs, execMs, memoryMibPerSandbox } = summary;
  const rates = Object.entries(summary.passRateByTask).map(
    ([task, rate]) => `${task} ${Math.round(rate * 100)} %`,
  );
  return formatTable([
    ["as planned", `${summary.asPlanned} of ${summary.sandboxes}`],
    ["passed", rates.join(", ")],
    ["create", `p50 ${createMs.p50 ?? "-"} ms, p99 ${createMs.p99 ?? "-"} ms`],
    ["exec", `p50 ${execMs.p50 ?? "-"} ms, p99 ${execMs.p99 ?? "-"} ms`],
    ["memory", `${memoryMibPerSandbox ?? "-"} MiB a sandbox`],
    ["time", `${summary.seconds} s`],
    ["leaks", String(summary.leaks)],
  ]);
}

/** Of the values that there are, by the nearest rank. */
export function percentilesOf(values: readonly (number | undefined)[]): Percentiles {
  const sorted = values.filter((value) => value !== undefined).toSorted((a, b) => a - b);
  const at = (part: number): number | null => {
    const value = sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)];
    return value === undefined ? null : round(value, 1);
  };
  return { p50: at(0.5), p99: at(0.99) };
}

function passRate(reports: readonly RunReport[], task: string): number {
  const own = reports.filter((report) => report.run.task.name === task);
  return round(own.filter((report) => report.verdict === "pass").length / own.length, 4);
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
