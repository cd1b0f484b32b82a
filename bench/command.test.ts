import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Benchmark, type BenchmarkOptions, openPeers } from "./benchmark.ts";
import { type BenchContext, runBench } from "./command.ts";
import { type Contender, measureInterleaved, runConcurrently } from "./harness.ts";
import { readResults } from "./result.ts";
import { judge } from "./targets.ts";

function contender(name: string): Contender {
  return {
    name,
    share: 1,
    run: (operations, inFlight) =>
      runConcurrently(() => new Promise((resolve) => setImmediate(resolve)), operations, inFlight),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function benchmark(floor: number): Benchmark {
  return {
    name: "tick",
    summary: "turns of the event loop",
    async run({ signal, progress }) {
      const plan = { levels: [{ inFlight: 2, operations: 10 }], rounds: 1, progress };
      const series = await measureInterleaved([contender("loop")], plan, signal);
      const target = judge({ metric: "rate", unit: "/s", better: "higher", floor }, series[0]?.rate);
      return { parameters: {}, series, skipped: [], targets: [target] };
    },
  };
}

async function context(t: TestContext, floor: number): Promise<BenchContext & { lines: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), "dsec-bench-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  return {
    benchmarks: [benchmark(floor)],
    repository: folder,
    resultsFolder: join(folder, "results"),
    signal: new AbortController().signal,
    print: (line) => lines.push(line),
    progress: () => {},
    lines,
  };
}

test("runBench() lists the benchmarks", async (t) => {
  const given = await context(t, 1);
  assert.equal(await runBench({ word: "list", quick: false, json: false }, given), 0);
  assert.match(given.lines[0] ?? "", /^tick +turns of the event loop$/);
});

test("runBench() stores the result, ends with one line of JSON and answers 0 when the floors are met", async (t) => {
  const given = await context(t, 1);
  assert.equal(await runBench({ word: "tick", quick: true, json: true }, given), 0);
  const [stored] = await readResults(given.resultsFolder);
  assert.equal(stored?.name, "tick");
  assert.equal(stored?.quick, true);
  assert.equal(given.lines.length, 1);
  const line: unknown = JSON.parse(given.lines[0] ?? "");
  assert.ok(typeof line === "object" && line !== null && "targets" in line && "machine" in line);
});

test("runBench() answers 1 when a floor is missed and 2 for an unknown name", async (t) => {
  const given = await context(t, 1e12);
  assert.equal(await runBench({ word: "tick", quick: true, json: false }, given), 1);
  assert.match(given.lines.at(-1) ?? "", /^rate: .* floor >= 1,000,000,000,000 MISSED$/);
  assert.equal(await runBench({ word: "tock", quick: true, json: false }, given), 2);
});

test("runBench() writes the report of what is stored", async (t) => {
  const given = await context(t, 1);
  await runBench({ word: "tick", quick: false, json: true }, given);
  assert.equal(await runBench({ word: "report", quick: false, json: false }, given), 0);
  assert.match(await readFile(join(given.repository, "docs/BENCHMARKS.md"), "utf8"), /## tick/);
});

test("openPeers() says why a peer cannot run and gives the others", async () => {
  await using held = new AsyncDisposableStack();
  const options: BenchmarkOptions = {
    quick: true,
    signal: new AbortController().signal,
    progress: () => {},
  };
  const { contenders, skipped } = await openPeers(
    [
      { name: "absent", open: () => Promise.reject(new Error("not on this host")) },
      { name: "there", open: () => Promise.resolve(contender("there")) },
    ],
    held,
    options,
  );
  assert.deepEqual(
    contenders.map((one) => one.name),
    ["there"],
  );
  assert.deepEqual(skipped, [{ what: "absent", reason: "not on this host" }]);
});
