import { globSync } from "node:fs";
import { repositoryRoot } from "./repository.ts";

/** One step of the gate. Steps do not depend on one another. */
export interface CheckStep {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  /** Captures how many things the step looked at; 0 or no match fails the step. Absent when the tool itself fails on nothing. */
  readonly seen?: RegExp;
  /** Static steps read the sources only; the others run them. */
  readonly static: boolean;
}

/** What a step left behind: its exit code and both outputs as one text. */
export interface StepReport {
  readonly exitCode: number;
  readonly output: string;
}

const cargo = (...args: string[]): [string, ...string[]] => {
  const [command = "", ...rest] = args;
  return ["cargo", command, "--manifest-path", "native/chronus/Cargo.toml", ...rest];
};

/** Test files of the gate: units beside their sources and the repository's own checks. */
export const unitTestFiles = (): string[] =>
  globSync(["packages/*/src/**/*.test.ts", "tools/**/*.test.ts", "bench/**/*.test.ts"], {
    cwd: repositoryRoot,
    exclude: (path) => path === "node_modules",
  }).toSorted();

/** The gate in the order in which it runs: cheapest first. */
export const checkSteps: readonly CheckStep[] = [
  { name: "format", argv: ["biome", "ci", "."], seen: /Checked (\d+) files?/, static: true },
  { name: "lint", argv: ["oxlint", "--deny-warnings"], seen: /on (\d+) files?/, static: true },
  { name: "types", argv: ["tsc", "--noEmit", "-p", "tsconfig.json"], static: true },
  {
    name: "dead code",
    argv: ["knip", "--strict", "--performance"],
    seen: /getImportsAndExports\s+(\d+)/,
    static: true,
  },
  { name: "rust format", argv: cargo("fmt", "--check"), static: true },
  {
    name: "rust lint",
    argv: cargo("clippy", "--all-targets", "--locked", "--", "-D", "warnings"),
    static: true,
  },
  {
    name: "unit tests",
    argv: [process.execPath, "--test", "--test-reporter=spec", ...unitTestFiles()],
    seen: /tests (\d+)/,
    static: false,
  },
];
