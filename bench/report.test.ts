import assert from "node:assert/strict";
import { appendFile, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { barChart, formatNumber } from "./plot.ts";
import { renderReport, writeReport } from "./report.ts";
import { type BenchmarkResult, readResults, storeResult } from "./result.ts";
import { summarise } from "./statistics.ts";
import { judge } from "./targets.ts";

function resultOf(change: Partial<BenchmarkResult> = {}): BenchmarkResult {
  const latencyMs = summarise([5, 6, 7]);
  return {
    name: "create",
    revision: "0123456789",
    startedAtMs: 1,
    quick: false,
    machine: { cores: 2, cpu: "A CPU", memoryMib: 24_576, kernel: "6.18", node: "26.0.0", loadAtStart: 0.1 },
    parameters: { rounds: 3 },
    series: [
      {
        contender: "dsec",
        inFlight: 8,
        latencyMs,
        rate: 160,
        rateSpread: 0.05,
        roundRates: [160],
        roundP50Ms: [6],
        failures: 0,
        samplesMs: [5, 6, 7],
      },
    ],
    skipped: [{ what: "docker run", reason: "no daemon" }],
    targets: [
      judge({ metric: "p50 alone", unit: "ms", better: "lower", floor: 20, target: 10 }, 15),
      judge({ metric: "against docker", unit: "x", better: "higher", floor: 4 }, undefined),
    ],
    ...change,
  };
}

test("renderReport() shows targets, series, what was skipped and a plot", () => {
  const { text, plots } = renderReport([resultOf()]);
  assert.match(text, /\| p50 alone \| 15 ms \| < 20 ✓ \| < 10 ✗ \|/);
  assert.match(text, /\| against docker \| not measured \| ≥ 4 ✗ \| {2}\|/);
  assert.match(text, /\| dsec \| 8 \| 160 \| 5 % \| 6 \|/);
  assert.match(text, /Not measured: docker run \(no daemon\)\./);
  assert.match(text, /!\[create\]\(benchmarks\/create-rate\.svg\)/);
  assert.deepEqual([...plots.keys()], ["create-rate.svg", "create-p50.svg"]);
});

test("renderReport() prefers full runs to later quick ones and keeps a history", () => {
  const runs = [
    resultOf({ revision: "aaaa" }),
    resultOf({ revision: "bbbb" }),
    resultOf({ revision: "cccc", quick: true }),
  ];
  const { text } = renderReport(runs);
  assert.match(text, /Revision bbbb;/);
  assert.match(text, /\| aaaa \| 0\.1 \| 15 \|/);
  assert.doesNotMatch(text, /cccc/);
  assert.match(renderReport(runs.slice(2)).text, /A quick run: few samples\./);
});

test("barChart() escapes text and gives the longest bar the whole room", () => {
  const svg = barChart({
    title: "a < b & c",
    unit: "ms",
    bars: [
      { label: "x", value: 50, group: "x" },
      { label: "y", value: 100, group: "y" },
    ],
  });
  assert.match(svg, /a &lt; b &amp; c/);
  assert.match(svg, /width="400\.0"/);
  assert.match(svg, /width="200\.0"/);
});

test("formatNumber() keeps three digits that count", () => {
  assert.deepEqual([0.1234, 1.234, 12.34, 1234.5].map(formatNumber), ["0.123", "1.23", "12.3", "1,235"]);
});

test("storeResult() and readResults() give back what was stored, and refuse a damaged line", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "dsec-results-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const results = [resultOf(), resultOf({ revision: "later" })];
  for (const result of results) await storeResult(folder, result);
  assert.deepEqual(await readResults(folder), results);
  await appendFile(join(folder, "create.jsonl"), `${JSON.stringify({ ...resultOf(), extra: 1 })}\n`);
  await assert.rejects(readResults(folder), /create\.jsonl:3: not a result/);
});

test("writeReport() writes the text and replaces the plots", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "dsec-report-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeReport(folder, { text: "old", plots: new Map([["old.svg", "<svg/>"]]) });
  await writeReport(folder, renderReport([resultOf()]));
  assert.match(await readFile(join(folder, "BENCHMARKS.md"), "utf8"), /^# Benchmarks/);
  assert.deepEqual((await readdir(join(folder, "benchmarks"))).toSorted(), [
    "create-p50.svg",
    "create-rate.svg",
  ]);
});
