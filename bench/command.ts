import { join } from "node:path";
import type { Benchmark } from "./benchmark.ts";
import { describeMachine, revision } from "./machine.ts";
import { formatNumber } from "./plot.ts";
import { renderReport, writeReport } from "./report.ts";
import { type BenchmarkResult, readResults, storeResult, type Target } from "./result.ts";
import { allFloorsMet } from "./targets.ts";

export interface BenchCommand {
  /** `list`, `report`, or the name of a benchmark. */
  readonly word: string;
  readonly quick: boolean;
  readonly json: boolean;
}

export interface BenchContext {
  readonly benchmarks: readonly Benchmark[];
  /** Root of the repository: its commit is measured, the report goes to its `docs`. */
  readonly repository: string;
  readonly resultsFolder: string;
  readonly signal: AbortSignal;
  /** The answer. */
  readonly print: (line: string) => void;
  /** Everything on the way to it. */
  readonly progress: (line: string) => void;
}

/** Runs the command and gives its exit code: 0 done and every floor met, 1 a floor missed, 2 no such benchmark. */
export async function runBench(command: BenchCommand, context: BenchContext): Promise<number> {
  const { benchmarks, print, progress } = context;
  if (command.word === "list") {
    for (const { name, summary } of benchmarks) print(`${name.padEnd(10)} ${summary}`);
    print(`${"report".padEnd(10)} writes docs/BENCHMARKS.md from the stored results`);
    return 0;
  }
  if (command.word === "report") {
    const results = await readResults(context.resultsFolder);
    await writeReport(join(context.repository, "docs"), renderReport(results));
    print(`docs/BENCHMARKS.md: ${results.length} results`);
    return 0;
  }
  const benchmark = benchmarks.find(({ name }) => name === command.word);
  if (benchmark === undefined) {
    const known = ["list", "report", ...benchmarks.map(({ name }) => name)];
    progress(`no benchmark "${command.word}"; known: ${known.join(", ")}`);
    return 2;
  }
  const result = await measure(benchmark, command.quick, context);
  await storeResult(context.resultsFolder, result);
  for (const line of command.json ? [jsonLine(result)] : describe(result)) print(line);
  return allFloorsMet(result.targets) ? 0 : 1;
}

async function measure(
  benchmark: Benchmark,
  quick: boolean,
  { repository, signal, progress }: BenchContext,
): Promise<BenchmarkResult> {
  const facts = { machine: describeMachine(), revision: revision(repository), startedAtMs: Date.now() };
  const measurements = await benchmark.run({ quick, signal, progress });
  return { name: benchmark.name, quick, ...facts, ...measurements };
}

/** The whole result but its samples, on one line. */
function jsonLine(result: BenchmarkResult): string {
  return JSON.stringify(result, (key, value: unknown) => (key === "samplesMs" ? undefined : value));
}

function describe(result: BenchmarkResult): string[] {
  return [
    ...result.series.map(
      ({ contender, inFlight, rate, latencyMs }) =>
        `${contender.padEnd(24)} ${String(inFlight).padStart(4)} in flight  ${formatNumber(rate).padStart(8)}/s  ` +
        `p50 ${formatNumber(latencyMs.p50)} ms  p99 ${formatNumber(latencyMs.p99)} ms`,
    ),
    ...result.skipped.map(({ what, reason }) => `not measured: ${what}: ${reason}`),
    ...result.targets.map(describeTarget),
  ];
}

function describeTarget({ metric, value, unit, better, floor, target, ...met }: Target): string {
  const sign = better === "lower" ? "<" : ">=";
  const bound = (name: string, amount: number | null, isMet: boolean): string =>
    amount === null ? "" : `  ${name} ${sign} ${formatNumber(amount)} ${isMet ? "met" : "MISSED"}`;
  const shown = value === null ? "not measured" : `${formatNumber(value)} ${unit}`.trim();
  return `${metric}: ${shown}${bound("floor", floor, met.floorMet)}${bound("target", target, met.targetMet)}`;
}
