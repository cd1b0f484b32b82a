import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clause, flag, sized } from "../tests/acceptance/report.ts";
import { parseAcceptArguments, summarize } from "./accept.ts";

test("parseAcceptArguments() reads the part and all three forms of a flag", () => {
  assert.deepEqual(parseAcceptArguments(["1", "--tasks", "/t", "--count=4", "--keep"]), {
    part: "1",
    length: "full",
    flags: { tasks: "/t", count: "4", keep: "true" },
  });
  assert.equal(parseAcceptArguments(["--soak", "1"]).length, "soak");
});

for (const args of [[], ["one"], ["1", "stray"], ["1", "-x"]]) {
  test(`parseAcceptArguments() refuses "${args.join(" ")}"`, () => {
    assert.throws(() => parseAcceptArguments(args));
  });
}

const row = { kind: "clause", name: "create p50", measured: "21 ms", limit: "≤ 20 ms", ok: false } as const;

test("summarize() prints a missed clause and names it", () => {
  const { table, problems } = summarize([row], {});
  assert.match(table, /create p50 \| 21 ms +\| ≤ 20 ms \| NO/);
  assert.deepEqual(problems, ["missed: create p50"]);
});

test("summarize() refuses a run that measured nothing and a flag that nothing read", () => {
  assert.deepEqual(summarize([{ kind: "flag", name: "seed" }], { seed: "1", sed: "2" }).problems, [
    "no clause was measured",
    "no test reads --sed",
  ]);
});

test("clause() records what it measured and throws on a miss", async (context) => {
  const directory = mkdtempSync(join(tmpdir(), "dsec-report-"));
  const before = process.env["DSEC_ACCEPT_REPORT"];
  process.env["DSEC_ACCEPT_REPORT"] = join(directory, "report.jsonl");
  context.after(() => {
    if (before === undefined) delete process.env["DSEC_ACCEPT_REPORT"];
    else process.env["DSEC_ACCEPT_REPORT"] = before;
    rmSync(directory, { recursive: true });
  });
  await clause("fast", { limit: { atMost: 5, unit: "ms" }, measure: () => 4 });
  await assert.rejects(
    clause("slow", { limit: { atMost: 5, unit: "ms" }, measure: () => 6 }),
    /measured 6 ms, limit ≤ 5 ms/,
  );
  await assert.rejects(
    clause("broken", {
      limit: { equals: true },
      measure: () => {
        throw new Error("no platform");
      },
    }),
    /no platform/,
  );
  const lines = readFileSync(join(directory, "report.jsonl"), "utf8").trim().split("\n");
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [
      { kind: "clause", name: "fast", measured: "4 ms", limit: "≤ 5 ms", ok: true },
      { kind: "clause", name: "slow", measured: "6 ms", limit: "≤ 5 ms", ok: false },
      { kind: "clause", name: "broken", measured: "failed: no platform", limit: "true", ok: false },
    ],
  );
});

test("flag() and sized() fall back to what the test gives", () => {
  assert.equal(flag("no-such-flag", "7"), "7");
  assert.equal(typeof sized({ short: 1, full: 2, soak: 3 }), "number");
});
