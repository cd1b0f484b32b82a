import { spawn } from "node:child_process";
import { join } from "node:path";

/** What a run of the `dsec` command left: outputs as text, and how it ended. */
export interface CliReport {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface DsecOptions {
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Called with all of stdout and stderr so far, whenever there is more; for tests that send signals. */
  readonly onOutput?: (output: string, kill: (signal: NodeJS.Signals) => void) => void;
  readonly signal: AbortSignal;
}

const main = join(import.meta.dirname, "../../cli/src/main.ts");

/** Runs the `dsec` command as a process of its own. The signal kills it. */
export async function runDsec(args: readonly string[], options: DsecOptions): Promise<CliReport> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    signal: options.signal,
  });
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8");
    child[name].on("data", (text: string) => {
      texts[name] += text;
      options.onOutput?.(texts.stdout + texts.stderr, (signal) => child.kill(signal));
    });
  }
  child.stdin.end(options.stdin ?? "");
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject);
  child.once("close", (code) => resolve(code));
  return { exitCode: await promise, ...texts };
}
