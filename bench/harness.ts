import type { Series } from "./result.ts";
import { median, round, spread, summarise, thin } from "./statistics.ts";

/** What a contender did in one round. Failed operations have no duration. */
export interface Round {
  readonly durationsMs: readonly number[];
  readonly elapsedMs: number;
  readonly failures: number;
}

/** One of those compared: the platform, or a peer. Its holder disposes it. */
export interface Contender extends AsyncDisposable {
  readonly name: string;
  /** Share of the operations of a round that it gets, so that a slow peer does not set the time of the run. */
  readonly share: number;
  /** Does `operations` operations, `inFlight` of them at any time. */
  run(operations: number, inFlight: number, signal: AbortSignal): Promise<Round>;
}

/** How much is done at one number of operations in flight. */
export interface Level {
  readonly inFlight: number;
  readonly operations: number;
}

export interface Plan {
  readonly levels: readonly Level[];
  /** Rounds of each contender at each level. */
  readonly rounds: number;
  /** Shows where the run is. */
  readonly progress: (line: string) => void;
}

const samplesMax = 1_000;

/** Measures all contenders in one run, interleaved (A B A B), after one warm-up round of each at each level. */
export async function measureInterleaved(
  contenders: readonly Contender[],
  plan: Plan,
  signal: AbortSignal,
): Promise<Series[]> {
  const series: Series[] = [];
  for (const level of plan.levels) {
    const rounds = new Map<Contender, Round[]>(contenders.map((contender) => [contender, []]));
    for (const contender of contenders) {
      const operations = Math.max(level.inFlight, Math.round(operationsOf(contender, level) / 5));
      await contender.run(operations, level.inFlight, signal);
    }
    for (let index = 1; index <= plan.rounds; index += 1) {
      for (const [contender, done] of rounds) {
        plan.progress(`${contender.name}, ${level.inFlight} in flight, round ${index} of ${plan.rounds}`);
        signal.throwIfAborted();
        done.push(await contender.run(operationsOf(contender, level), level.inFlight, signal));
      }
    }
    for (const [contender, done] of rounds) series.push(seriesOf(contender.name, level.inFlight, done));
  }
  return series;
}

/**
 * Runs one operation after another, `inFlight` at any time, and measures each. The loop of a contender that lives in
 * this process. An operation that throws counts as a failure; when all fail, the last error is thrown.
 */
export async function runConcurrently(
  operation: (index: number) => Promise<void>,
  operations: number,
  inFlight: number,
): Promise<Round> {
  const durationsMs: number[] = [];
  let next = 0;
  let lastError: unknown;
  const lane = async (): Promise<void> => {
    while (next < operations) {
      const index = next++;
      const startMs = performance.now();
      try {
        await operation(index);
        durationsMs.push(performance.now() - startMs);
      } catch (error) {
        lastError = error;
      }
    }
  };
  const startMs = performance.now();
  await Promise.all(Array.from({ length: Math.min(inFlight, operations) }, lane));
  const elapsedMs = performance.now() - startMs;
  if (durationsMs.length === 0) throw new Error("every operation of a round failed", { cause: lastError });
  return { durationsMs, elapsedMs, failures: operations - durationsMs.length };
}

/** The series of a contender at a level, if it was measured there. */
export function findSeries(
  series: readonly Series[],
  contender: string,
  inFlight: number,
): Series | undefined {
  return series.find((one) => one.contender === contender && one.inFlight === inFlight);
}

/** The highest rate of a contender over all levels: what it sustains. Undefined if it was not measured. */
export function sustainedRate(series: readonly Series[], contender: string): number | undefined {
  const rates = series.filter((one) => one.contender === contender).map((one) => one.rate);
  return rates.length === 0 ? undefined : Math.max(...rates);
}

/** One value against another; undefined if one is missing. */
export function ratio(above: number | undefined, below: number | undefined): number | undefined {
  return above === undefined || below === undefined || below === 0 ? undefined : above / below;
}

function operationsOf(contender: Contender, level: Level): number {
  return Math.max(level.inFlight, Math.round(level.operations * contender.share));
}

function seriesOf(contender: string, inFlight: number, rounds: readonly Round[]): Series {
  const durations = rounds.flatMap((one) => one.durationsMs);
  const rates = rounds.map((one) => round((one.durationsMs.length / one.elapsedMs) * 1000));
  return {
    contender,
    inFlight,
    latencyMs: summarise(durations),
    rate: round(median(rates)),
    rateSpread: spread(rates),
    roundRates: rates,
    roundP50Ms: rounds.map((one) => round(median(one.durationsMs))),
    failures: rounds.reduce((sum, one) => sum + one.failures, 0),
    samplesMs: thin(durations, samplesMax),
  };
}
