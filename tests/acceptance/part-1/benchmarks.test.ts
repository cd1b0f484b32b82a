// The benchmarks `create` and `exec` exit 0: their floors are met. With a small n, as in `npm test`, only that they measure.
import { test } from "node:test";
import { reasonToSkip, startPlatform } from "@dsec/testkit";
import { clause, sized } from "../report.ts";
import { lastWords, type ProgramReport, repository, runProgram } from "../run-program.ts";

for (const name of ["create", "exec"]) {
  test(`npm run bench -- ${name}`, { skip: reasonToSkip(), timeout: 1_800_000 }, async (t) => {
    await using platform = await startPlatform({ signal: t.signal });
    const isQuick = sized({ short: true, full: false, soak: false });
    const words = [name, "--json", ...(isQuick ? ["--quick"] : [])];
    const report = await runProgram(["npm", "run", "bench", "--", ...words], {
      cwd: repository,
      env: platform.env,
      signal: t.signal,
    });
    const targets = targetsOf(report);
    for (const { metric, value, floor, floorMet } of targets) {
      t.diagnostic(`${metric}: ${value} (floor ${floor}: ${floorMet ? "met" : "MISSED"})`);
    }
    await clause(`${name}: operations that failed`, {
      limit: { equals: 0 },
      measure: () => targets.find(({ metric }) => metric === "failed")?.value ?? -1,
    });
    if (isQuick) return;
    await clause(`npm run bench -- ${name}: exit code, 0 when every floor is met`, {
      limit: { equals: 0 },
      measure: () => report.exitCode ?? -1,
    });
  });
}

interface Target {
  readonly metric: string;
  readonly value: number | null;
  readonly floor: number | null;
  readonly floorMet: boolean;
}

/** The targets in the last line of a benchmark's output; fails when there is no such line. */
function targetsOf(report: ProgramReport): readonly Target[] {
  const line = report.stdout.trimEnd().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`the benchmark ${lastWords(report)}`);
  return (JSON.parse(line) as { targets: readonly Target[] }).targets;
}
