import { spawn } from "node:child_process";
import { join } from "node:path";

/** How a program ended, with all that it wrote. */
export interface ProgramReport {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** From start to end of output. */
  readonly seconds: number;
}

export interface ProgramOptions {
  readonly cwd: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the program and whatever it started. */
  readonly signal: AbortSignal;
}

/** Root of the repository that these tests are in. */
export const repository = join(import.meta.dirname, "../..");

/** Runs a program to its end, in a process group of its own. Rejects when it cannot be started. */
export async function runProgram(
  [program, ...args]: readonly [string, ...string[]],
  { cwd, env, signal }: ProgramOptions,
): Promise<ProgramReport> {
  signal.throwIfAborted();
  const startedAt = performance.now();
  const child = spawn(program, args, {
    cwd,
    env: cleanEnvironment(env),
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const onAbort = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM");
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8");
    child[name].on("data", (text: string) => {
      output[name] += text;
    });
  }
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject);
  child.once("close", resolve);
  try {
    const exitCode = await promise;
    return { exitCode, ...output, seconds: (performance.now() - startedAt) / 1000 };
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** The last words of a program that did not do what it should, for the message of an assertion. */
export function lastWords({ exitCode, stdout, stderr }: ProgramReport): string {
  return `ended with ${exitCode}\n${stdout.slice(-3_000)}\n${stderr.slice(-6_000)}`;
}

/** This process's, without what a test runner or npm adds for its own children. */
function cleanEnvironment(added: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_|NODE_TEST_CONTEXT$|NODE_OPTIONS$|DSEC_ACCEPT_)/.test(name),
  );
  return { ...Object.fromEntries(inherited), ...added };
}
