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
import { crunExec } from "./peers/crun.ts";
import { openPlatform, type PlatformSandbox } from "./platform.ts";
import type { Series, Target } from "./result.ts";
import { judge } from "./targets.ts";

const platformName = "dsec";

const peers: readonly Peer[] = [{ name: "crun exec", open: crunExec }];

/** `true` in a sandbox that lives, through the apiserver. */
export const exec: Benchmark = {
  name: "exec",
  summary: "`true` in a live sandbox; 1 and 64 in flight; against crun exec",
  async run(options): Promise<Measurements> {
    const { quick, signal, progress } = options;
    await using held = new AsyncDisposableStack();
    const platform = held.use(await openPlatform(signal));
    const sandbox = held.use(await platform.create(signal));
    const { contenders, skipped } = await openPeers(peers, held, options);
    const scale = quick ? 0.05 : 1;
    const levels = [
      { inFlight: 1, operations: Math.round(1_000 * scale) },
      { inFlight: 64, operations: Math.round(4_000 * scale) },
    ];
    const rounds = quick ? 1 : 5;
    const plan = { levels, rounds, progress };
    const series = await measureInterleaved([commands(sandbox), ...contenders], plan, signal);
    return {
      parameters: {
        rounds,
        operationsAlone: levels[0]?.operations ?? 0,
        operationsInFlight: levels[1]?.operations ?? 0,
      },
      series,
      skipped: [
        ...skipped,
        { what: "p50 at the edge", reason: "an edge takes calls of the apiserver alone" },
      ],
      targets: judgeExec(series),
    };
  },
};

/** Floors and targets of the benchmark, from its series. */
export function judgeExec(series: readonly Series[]): Target[] {
  const rate = sustainedRate(series, platformName);
  const failures = series.filter((one) => one.contender === platformName).map((one) => one.failures);
  return [
    judge(
      { metric: "p50 alone", unit: "ms", better: "lower", floor: 5, target: 3 },
      findSeries(series, platformName, 1)?.latencyMs.p50,
    ),
    judge({ metric: "sustained", unit: "/s", better: "higher", floor: 1_000, target: 2_000 }, rate),
    judge(
      { metric: "rate against crun exec", unit: "x", better: "higher", target: 5 },
      ratio(rate, sustainedRate(series, "crun exec")),
    ),
    judge(
      { metric: "failed", unit: "", better: "lower", floor: 1 },
      failures.reduce((sum, count) => sum + count, 0),
    ),
  ];
}

function commands(sandbox: PlatformSandbox): Contender {
  return {
    name: platformName,
    share: 1,
    run: (operations, inFlight, signal) =>
      runConcurrently(() => sandbox.runTrue(signal), operations, inFlight),
    [Symbol.asyncDispose]: () => Promise.resolve(), // The sandbox is held by the benchmark.
  };
}
