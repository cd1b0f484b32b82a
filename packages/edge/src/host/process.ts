import { spawn } from "node:child_process";
import type { Readable } from "node:stream";

/** How a program ended. Outputs are text, cut at the caller's bounds. */
export interface ProcessReport {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly signal: AbortSignal;
  /** The whole environment of the program; PATH and LC_ALL when absent. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly stdoutBytesMax?: number;
  readonly stderrBytesMax?: number;
  readonly onStderrLine?: (line: string) => void;
  /** What abort sends first; SIGTERM when absent. */
  readonly abortSignal?: "SIGTERM" | "SIGKILL";
}

/** A program failed; its report is kept for the log. */
export class HostProcessError extends Error {
  override readonly name = "HostProcessError";
  readonly argv: readonly string[];
  readonly report: ProcessReport;

  constructor(argv: readonly string[], report: ProcessReport) {
    const end = report.signal === null ? `exit code ${report.code}` : `signal ${report.signal}`;
    super(`${argv[0]} ended with ${end}: ${report.stderr.slice(-2_000).trim()}`);
    this.argv = argv;
    this.report = report;
  }
}

const outputBytesDefault = 1024 * 1024;
export const scrubbedEnvironment: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C.UTF-8",
};

/**
 * Runs a program to its end and reports how it ended, whatever the code. Abort kills it (SIGTERM, then SIGKILL after 5 s) and rejects
 * with the signal's reason once it is gone. A program that cannot be started rejects.
 */
export async function runProcess(
  argv: readonly [string, ...string[]],
  options: RunOptions,
): Promise<ProcessReport> {
  options.signal.throwIfAborted();
  const [program, ...parameters] = argv;
  const child = spawn(program, parameters, {
    env: options.env ?? scrubbedEnvironment,
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  const stdout = collect(child.stdout, options.stdoutBytesMax ?? outputBytesDefault);
  const stderr = collect(child.stderr, options.stderrBytesMax ?? outputBytesDefault, options.onStderrLine);
  child.stdin?.on("error", () => {
    // The program ended without reading its input; its report says how.
  });
  child.stdin?.end(options.stdin);
  let killTimer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    child.kill(options.abortSignal ?? "SIGTERM");
    killTimer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  };
  options.signal.addEventListener("abort", onAbort, { once: true });
  try {
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (exitCode, exitSignal) => resolve([exitCode, exitSignal]));
    });
    options.signal.throwIfAborted();
    return { code, signal, stdout: stdout(), stderr: stderr() };
  } finally {
    clearTimeout(killTimer);
    options.signal.removeEventListener("abort", onAbort);
  }
}

/** `runProcess`, but any end other than exit code 0 throws HostProcessError. */
export async function runProgram(
  argv: readonly [string, ...string[]],
  options: RunOptions,
): Promise<ProcessReport> {
  const report = await runProcess(argv, options);
  if (report.code !== 0) throw new HostProcessError(argv, report);
  return report;
}

function collect(stream: Readable | null, bytesMax: number, onLine?: (line: string) => void): () => string {
  const chunks: Buffer[] = [];
  let kept = 0;
  let partial = "";
  stream?.on("data", (chunk: Buffer) => {
    const room = bytesMax - kept;
    if (room > 0) {
      chunks.push(chunk.subarray(0, room));
      kept += Math.min(room, chunk.length);
    }
    if (onLine === undefined) return;
    const lines = (partial + chunk.toString("utf8")).split("\n");
    partial = (lines.pop() ?? "").slice(-4_096);
    for (const line of lines) onLine(line);
  });
  return () => Buffer.concat(chunks).toString("utf8");
}
