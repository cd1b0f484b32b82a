import { appendFile, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";

const strict = { additionalProperties: false } as const;
const Amount = Type.Number({ minimum: 0 });

const SummarySchema = Type.Object(
  { count: Amount, min: Amount, p50: Amount, p90: Amount, p99: Amount, max: Amount, mean: Amount },
  strict,
);

/** One contender with one number of operations in flight, over all rounds. */
export const Series = Type.Object(
  {
    contender: Type.String(),
    inFlight: Type.Integer({ minimum: 1 }),
    latencyMs: SummarySchema,
    /** Operations a second: the median of the rounds. */
    rate: Amount,
    /** (highest - lowest) / median of the rounds' rates. */
    rateSpread: Amount,
    roundRates: Type.Array(Amount),
    roundP50Ms: Type.Array(Amount),
    failures: Type.Integer({ minimum: 0 }),
    /** Durations, sorted and thinned. */
    samplesMs: Type.Array(Amount),
  },
  strict,
);
export type Series = Static<typeof Series>;

/** A metric against its floor and target; `value` null: not measured, which meets nothing. */
export const Target = Type.Object(
  {
    metric: Type.String(),
    value: Type.Union([Type.Number(), Type.Null()]),
    unit: Type.String(),
    better: Type.Union([Type.Literal("lower"), Type.Literal("higher")]),
    /** Null: only a goal, no floor. */
    floor: Type.Union([Type.Number(), Type.Null()]),
    target: Type.Union([Type.Number(), Type.Null()]),
    floorMet: Type.Boolean(),
    targetMet: Type.Boolean(),
  },
  strict,
);
export type Target = Static<typeof Target>;

export const Machine = Type.Object(
  {
    cores: Type.Integer({ minimum: 1 }),
    cpu: Type.String(),
    memoryMib: Type.Integer({ minimum: 1 }),
    kernel: Type.String(),
    node: Type.String(),
    loadAtStart: Amount,
  },
  strict,
);
export type Machine = Static<typeof Machine>;

/** What was not measured, and why. */
export const Skipped = Type.Object({ what: Type.String(), reason: Type.String() }, strict);
export type Skipped = Static<typeof Skipped>;

/** One run of one benchmark: one line of `results/NAME.jsonl`. */
export const BenchmarkResult = Type.Object(
  {
    name: Type.String({ pattern: "^[a-z][a-z0-9-]{0,31}$" }),
    /** Git commit, with `+` when the working copy had changes. */
    revision: Type.String(),
    startedAtMs: Amount,
    quick: Type.Boolean(),
    machine: Machine,
    parameters: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
    series: Type.Array(Series),
    skipped: Type.Array(Skipped),
    targets: Type.Array(Target),
  },
  strict,
);
export type BenchmarkResult = Static<typeof BenchmarkResult>;

/** Appends one result to the folder's file of its name. */
export async function storeResult(folder: string, result: BenchmarkResult): Promise<void> {
  await mkdir(folder, { recursive: true });
  await appendFile(join(folder, `${result.name}.jsonl`), `${JSON.stringify(result)}\n`);
}

/** All stored results, by name and then in the order in which they ran. Throws on a line that is no result. */
export async function readResults(folder: string): Promise<BenchmarkResult[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".jsonl")).toSorted();
  const results: BenchmarkResult[] = [];
  for (const file of files) {
    const lines = (await readFile(join(folder, file), "utf8")).split("\n");
    for (const [index, line] of lines.entries()) {
      if (line !== "") results.push(parseResult(line, `${file}:${index + 1}`));
    }
  }
  return results;
}

function parseResult(line: string, place: string): BenchmarkResult {
  const value: unknown = JSON.parse(line);
  if (Value.Check(BenchmarkResult, value)) return value;
  const [first] = Value.Errors(BenchmarkResult, value);
  throw new Error(`${place}: not a result: ${first?.instancePath ?? ""} ${first?.message ?? ""}`);
}
