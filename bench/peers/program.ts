import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The environment that programs of peers run in; nothing of the caller's but what is named here. */
export interface ProgramEnvironment {
  readonly PATH: string;
  readonly LD_LIBRARY_PATH: string;
  readonly LC_ALL: "C";
  readonly HOME: string;
}

export interface RunOptions {
  readonly env: ProgramEnvironment;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

/** Runs a program to its end and gives its output. Throws with the end of its standard error when it fails. */
export async function runProgram(argv: readonly [string, ...string[]], options: RunOptions): Promise<string> {
  const [file, ...args] = argv;
  const { env, cwd, timeoutMs = 60_000, signal } = options;
  const settings = { env: { ...env }, timeout: timeoutMs, signal, maxBuffer: 16 * 1024 * 1024 };
  try {
    return (await run(file, args, cwd === undefined ? settings : { ...settings, cwd })).stdout;
  } catch (cause) {
    const stderr = cause instanceof Error && "stderr" in cause ? String(cause.stderr).trim() : "";
    throw new Error(`${file} failed: ${stderr.slice(-300)}`, { cause });
  }
}
