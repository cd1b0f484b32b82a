import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Round } from "../harness.ts";
import type { ProgramEnvironment } from "./program.ts";

/** In an argv: replaced by a name that is new for each operation. */
export const newId = "@NEW_ID@";

// Times each run of a program from a small process, which starts programs faster than this one could.
const script = `
prefix=$1 count=$2
shift 2
for ((i = 0; i < count; i++)); do
  start=$EPOCHREALTIME
  "\${@//${newId}/$prefix-$i}" </dev/null >/dev/null 2>&1
  code=$?
  echo "$start $EPOCHREALTIME $code"
done`;

export interface LoopLoad {
  readonly operations: number;
  readonly inFlight: number;
  /** argv put before each loop, not before each run: a namespace that the loop lives in. */
  readonly within?: readonly string[];
}

/** Runs a program again and again, `inFlight` at any time, each in a loop of its own. Throws when every run failed. */
export async function runLoops(
  argv: readonly string[],
  env: ProgramEnvironment,
  load: LoopLoad,
  signal: AbortSignal,
): Promise<Round> {
  const { operations, inFlight, within = [] } = load;
  const counts = Array.from({ length: inFlight }, (_, lane) => Math.floor((operations + lane) / inFlight));
  const startMs = performance.now();
  const outputs = await Promise.all(
    counts.map((count) => runLoop([...within, ...loopArgv(argv, count)], env, signal)),
  );
  const elapsedMs = performance.now() - startMs;

  const runs = outputs.flatMap((output) => output.trim().split("\n").filter(Boolean).map(parseRun));
  const durationsMs = runs.filter((run) => run.exitCode === 0).map((run) => run.durationMs);
  if (durationsMs.length === 0) throw new Error(`every run of ${argv[0] ?? ""} failed`);
  return { durationsMs, elapsedMs, failures: runs.length - durationsMs.length };
}

function loopArgv(argv: readonly string[], count: number): string[] {
  const prefix = `bench-${randomBytes(4).toString("hex")}`;
  return ["bash", "-c", script, "bash", prefix, String(count), ...argv];
}

async function runLoop(
  argv: readonly string[],
  env: ProgramEnvironment,
  signal: AbortSignal,
): Promise<string> {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, {
    env: { ...env },
    stdio: ["ignore", "pipe", "inherit"],
    signal,
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => resolve());
  });
  let output = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) output += String(chunk);
  await ended;
  return output;
}

/** One line: start and end in seconds with microseconds, and the exit code. */
function parseRun(line: string): { readonly durationMs: number; readonly exitCode: number } {
  const [start, end, code] = line.split(" ").map(Number);
  if (start === undefined || end === undefined || code === undefined || Number.isNaN(start + end + code)) {
    throw new Error(`not a timed run: ${line}`);
  }
  return { durationMs: (end - start) * 1000, exitCode: code };
}
