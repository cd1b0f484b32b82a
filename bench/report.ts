import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { barChart, formatNumber } from "./plot.ts";
import type { BenchmarkResult, Target } from "./result.ts";

/** The report's text, and its plots by file name. */
export interface Report {
  readonly text: string;
  readonly plots: ReadonlyMap<string, string>;
}

/** Writes `BENCHMARKS.md` and `benchmarks/*.svg` into the folder of the documents; older plots go. */
export async function writeReport(folder: string, report: Report): Promise<void> {
  const plotFolder = join(folder, "benchmarks");
  await rm(plotFolder, { recursive: true, force: true });
  await mkdir(plotFolder, { recursive: true });
  for (const [name, svg] of report.plots) await writeFile(join(plotFolder, name), svg);
  await writeFile(join(folder, "BENCHMARKS.md"), report.text);
}

/** Renders results, given in the order in which they ran. Full runs are shown; quick ones only where there is no other. */
export function renderReport(results: readonly BenchmarkResult[]): Report {
  const plots = new Map<string, string>();
  const names = [...new Set(results.map((result) => result.name))].toSorted();
  const sections = names.map((name) => {
    const runs = results.filter((result) => result.name === name);
    const full = runs.filter((result) => !result.quick);
    const shown = full.length > 0 ? full : runs;
    const latest = shown.at(-1);
    if (latest === undefined) return "";
    for (const [file, svg] of plotsOf(latest)) plots.set(file, svg);
    return section(latest, shown);
  });
  const intro = `# Benchmarks

Written by \`npm run bench -- report\` from the stored results. Run one with \`npm run bench -- NAME\`; \`list\` names
them. Contenders are measured in one run, in turns. A floor must be met; a target is the goal beside it.
`;
  return { text: [intro, ...sections].join("\n"), plots };
}

function section(latest: BenchmarkResult, runs: readonly BenchmarkResult[]): string {
  const { machine } = latest;
  const quick = latest.quick ? " A quick run: few samples." : "";
  const parameters = Object.entries(latest.parameters).map(([key, value]) => `${key} ${value}`);
  const series = latest.series.map((one) => [
    one.contender,
    String(one.inFlight),
    formatNumber(one.rate),
    `${formatNumber(one.rateSpread * 100)} %`,
    formatNumber(one.latencyMs.p50),
    formatNumber(one.latencyMs.p90),
    formatNumber(one.latencyMs.p99),
    String(one.latencyMs.count),
    String(one.failures),
  ]);
  return [
    `## ${latest.name}`,
    "",
    `Revision ${latest.revision}; ${machine.cores} × ${machine.cpu}, ${formatNumber(machine.memoryMib / 1024)} GiB, Linux ${machine.kernel}, Node ${machine.node}, load ${formatNumber(machine.loadAtStart)} at the start.${quick}`,
    ...(parameters.length > 0 ? ["", `Parameters: ${parameters.join(", ")}.`] : []),
    "",
    table(["metric", "value", "floor", "target"], latest.targets.map(targetRow)),
    "",
    ...(series.length > 0
      ? [
          table(
            ["contender", "in flight", "per s", "spread", "p50 ms", "p90 ms", "p99 ms", "n", "failed"],
            series,
          ),
          "",
        ]
      : []),
    ...[...plotsOf(latest).keys()].map((file) => `![${latest.name}](benchmarks/${file})\n`),
    ...latest.skipped.map(({ what, reason }) => `Not measured: ${what} (${reason}).\n`),
    ...(runs.length > 1 ? [history(runs), ""] : []),
  ].join("\n");
}

function targetRow(target: Target): string[] {
  const bound = (value: number | null, met: boolean): string => {
    if (value === null) return "";
    return `${target.better === "lower" ? "<" : "≥"} ${formatNumber(value)} ${met ? "✓" : "✗"}`;
  };
  const value = target.value === null ? "not measured" : `${formatNumber(target.value)} ${target.unit}`;
  return [target.metric, value, bound(target.floor, target.floorMet), bound(target.target, target.targetMet)];
}

/** The last ten runs, newest last, one column a metric. */
function history(runs: readonly BenchmarkResult[]): string {
  const metrics = [...new Set(runs.flatMap((run) => run.targets.map((target) => target.metric)))];
  const rows = runs.slice(-10).map((run) => [
    run.revision,
    formatNumber(run.machine.loadAtStart),
    ...metrics.map((metric) => {
      const value = run.targets.find((target) => target.metric === metric)?.value;
      return value === undefined || value === null ? "" : formatNumber(value);
    }),
  ]);
  return table(["revision", "load", ...metrics], rows);
}

function plotsOf(result: BenchmarkResult): Map<string, string> {
  const plots = new Map<string, string>();
  if (result.series.length === 0) return plots;
  const bars = (value: (one: BenchmarkResult["series"][number]) => number) =>
    result.series.map((one) => ({
      label: `${one.contender}, ${one.inFlight} in flight`,
      value: value(one),
      group: one.contender,
    }));
  plots.set(
    `${result.name}-rate.svg`,
    barChart({ title: `${result.name}: operations a second`, unit: "/s", bars: bars((one) => one.rate) }),
  );
  plots.set(
    `${result.name}-p50.svg`,
    barChart({
      title: `${result.name}: median duration`,
      unit: "ms",
      bars: bars((one) => one.latencyMs.p50),
    }),
  );
  return plots;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
