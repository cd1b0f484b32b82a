// `npm run accept -- N [--flag value…]`: runs the acceptance tests of part N and prints each clause beside its limit.
// `npm run soak -- N` runs the same at full length. Ends with 1 when a clause is missed or none was measured.
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReportLine } from "../tests/acceptance/report.ts";
import { repositoryRoot } from "./repository.ts";

type ClauseLine = Extract<ReportLine, { kind: "clause" }>;

/** What the command line asks for. */
export interface AcceptRequest {
  readonly part: string;
  readonly length: "full" | "soak";
  readonly flags: Readonly<Record<string, string>>;
}

/** Reads `[--soak] N [--flag value | --flag=value | --flag]…`; a flag without a value is "true". Throws on anything else. */
export function parseAcceptArguments(args: readonly string[]): AcceptRequest {
  const words = args.filter((word) => word !== "--soak");
  const [part = "", ...rest] = words;
  if (!/^\d$/.test(part)) throw new Error("Usage: npm run accept -- PART [--flag value…], PART from 1 to 9");
  const flags: Record<string, string> = {};
  for (let index = 0; index < rest.length; index += 1) {
    const [, name, inline] = /^--([a-z][a-z-]*)(?:=(.*))?$/.exec(rest[index] ?? "") ?? [];
    if (name === undefined) throw new Error(`Cannot read "${rest[index]}": flags look like --name value`);
    const next = rest[index + 1];
    const takesNext = inline === undefined && next !== undefined && !next.startsWith("--");
    flags[name] = inline ?? (takesNext ? next : "true");
    if (takesNext) index += 1;
  }
  return { part, length: args.includes("--soak") ? "soak" : "full", flags };
}

/** The table for people, and what is wrong with the run as a whole. */
export function summarize(
  lines: readonly ReportLine[],
  flags: AcceptRequest["flags"],
): { readonly table: string; readonly problems: readonly string[] } {
  const clauses = lines.filter((line): line is ClauseLine => line.kind === "clause");
  const asked = new Set(lines.flatMap((line) => (line.kind === "flag" ? [line.name] : [])));
  const rows = [
    ["clause", "measured", "limit", "ok"],
    ...clauses.map(({ name, measured, limit, ok }) => [name, measured, limit, ok ? "yes" : "NO"]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const table = rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join(" | ")
        .trimEnd(),
    )
    .join("\n");
  const missed = clauses.filter(({ ok }) => !ok).map(({ name }) => `missed: ${name}`);
  const ignored = Object.keys(flags).filter((name) => !asked.has(name));
  return {
    table,
    problems: [
      ...(clauses.length === 0 ? ["no clause was measured"] : missed),
      ...ignored.map((name) => `no test reads --${name}`),
    ],
  };
}

function main(args: readonly string[]): number {
  const { part, length, flags } = parseAcceptArguments(args);
  const files = globSync(`tests/acceptance/part-${part}/**/*.test.ts`, { cwd: repositoryRoot }).toSorted();
  if (files.length === 0) throw new Error(`No test in tests/acceptance/part-${part}`);
  const directory = mkdtempSync(join(tmpdir(), "dsec-accept-"));
  const report = join(directory, "report.jsonl");
  writeFileSync(report, "");
  try {
    const { status } = spawnSync(process.execPath, ["--test", "--test-concurrency=1", ...files], {
      cwd: repositoryRoot,
      stdio: "inherit",
      env: {
        ...process.env,
        DSEC_ACCEPT_FLAGS: JSON.stringify(flags),
        DSEC_ACCEPT_REPORT: report,
        DSEC_TEST_LENGTH: length,
      },
    });
    const { table, problems } = summarize(readReport(report), flags);
    const all = status === 0 ? problems : [...problems, "a test failed"];
    console.log(`\n${table}\n`);
    for (const problem of all) console.log(problem);
    console.log(`part ${part}: ${all.length === 0 ? "accepted" : "NOT accepted"}`);
    return all.length === 0 ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The report is written by our own `clause` and `flag` in this same run; its shape is theirs. */
function readReport(path: string): ReportLine[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line): ReportLine => JSON.parse(line));
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2));
