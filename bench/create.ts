import type { Benchmark, Measurements, Peer } from "./benchmark.ts";
import { openPeers } from "./benchmark.ts";
import {
  type Contender,
  findSeries,
  measureInterleaved,
  ratio,
  runConcurrently,
  sustainedRate,
} from "./harness.ts";
import { crunCycle, crunRun } from "./peers/crun.ts";
import { dockerRun } from "./peers/docker.ts";
import { openPlatform, type Platform } from "./platform.ts";
import type { Series, Target } from "./result.ts";
import { judge } from "./targets.ts";

const platformName = "dsec";

const peers: readonly Peer[] = [
  { name: "crun run, exec, delete", open: crunCycle },
  { name: "crun run", open: crunRun },
  { name: "docker run", open: dockerRun },
];

/** Create, one `true`, delete; warm layers; from the SDK over apiserver and edge to the kernel. */
export const create: Benchmark = {
  name: "create",
  summary: "container: create, one `true`, delete; 1, 8 and 32 in flight; against crun and docker",
  async run(options): Promise<Measurements> {
    const { quick, signal, progress } = options;
    await using held = new AsyncDisposableStack();
    const platform = held.use(await openPlatform(signal));
    const { contenders, skipped } = await openPeers(peers, held, options);
    const scale = quick ? 0.05 : 1;
    const levels = [
      { inFlight: 1, operations: Math.round(200 * scale) },
      { inFlight: 8, operations: Math.round(600 * scale) },
      { inFlight: 32, operations: Math.round(600 * scale) },
    ];
    const rounds = quick ? 1 : 5;
    const plan = { levels, rounds, progress };
    const series = await measureInterleaved([cycles(platform), ...contenders], plan, signal);
    return {
      parameters: {
        rounds,
        operationsAlone: levels[0]?.operations ?? 0,
        operationsInFlight: levels[1]?.operations ?? 0,
      },
      series,
      skipped: [
        ...skipped,
        { what: "the bare launcher", reason: "a spawner without an edge is not part of the public API" },
      ],
      targets: judgeCreate(series),
    };
  },
};

/** Floors and targets of the benchmark, from its series. */
export function judgeCreate(series: readonly Series[]): Target[] {
  const rate = sustainedRate(series, platformName);
  const against = (peer: string): number | undefined => ratio(rate, sustainedRate(series, peer));
  const failures = series.filter((one) => one.contender === platformName).map((one) => one.failures);
  return [
    judge(
      { metric: "p50 alone", unit: "ms", better: "lower", floor: 20, target: 10 },
      findSeries(series, platformName, 1)?.latencyMs.p50,
    ),
    judge({ metric: "sustained", unit: "/s", better: "higher", floor: 100, target: 200 }, rate),
    judge(
      { metric: "rate against docker run", unit: "x", better: "higher", floor: 4 },
      against("docker run"),
    ),
    judge(
      { metric: "rate against crun", unit: "x", better: "higher", floor: 2 },
      against("crun run, exec, delete"),
    ),
    judge(
      { metric: "failed", unit: "", better: "lower", floor: 1 },
      failures.reduce((sum, count) => sum + count, 0),
    ),
  ];
}

function cycles(platform: Platform): Contender {
  return {
    name: platformName,
    share: 1,
    run: (operations, inFlight, signal) =>
      runConcurrently(
        async () => {
          await using sandbox = await platform.create(signal);
          await sandbox.runTrue(signal);
        },
        operations,
        inFlight,
      ),
    [Symbol.asyncDispose]: () => Promise.resolve(), // The platform is held by the benchmark.
  };
}
