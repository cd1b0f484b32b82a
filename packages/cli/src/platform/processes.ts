import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "@dsec/contracts";

/** A process that can be told from a later one with the same pid. `startTime` is in clock ticks since boot. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: number;
}

export interface DaemonOptions {
  /** For people: "control". */
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  /** Takes stderr, appended. */
  readonly logFile: string;
  /** The user that it runs as; the caller's when absent. */
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly readyMsMax: number;
  /** How long it may take to end when it is told to before it is ready. */
  readonly graceMs: number;
  /** Gets what the daemon says it is doing until it is ready. */
  readonly onProgress: (line: string) => void;
}

/** A daemon that said it is ready, with the line of JSON that it said so with. */
export interface ReadyDaemon extends ProcessIdentity {
  readonly ready: unknown;
}

const logTailBytes = 2_000;
const pollMs = 10;

/**
 * Starts a daemon in a session of its own, so that it outlives this process and its terminal, and resolves when it has
 * written its line to stdout; lines of JSON with `progress` may come before. When it ends before, is too slow or the signal aborts, nothing of it is left.
 */
export async function startDaemon(options: DaemonOptions, signal: AbortSignal): Promise<ReadyDaemon> {
  const log = openSync(options.logFile, "a", 0o600);
  const [program, ...args] = options.argv;
  let child: ChildProcess;
  try {
    child = spawn(program, args, {
      detached: true,
      cwd: "/",
      stdio: ["ignore", "pipe", log],
      ...(options.user === undefined ? {} : { uid: options.user.uid, gid: options.user.gid }),
    });
  } finally {
    closeSync(log);
  }
  try {
    const ready = await readyLine(child, options, signal);
    const pid = child.pid ?? 0;
    const startTime = startTimeOf(pid);
    if (startTime === undefined) throw ended(options, "at once");
    child.stdout?.destroy();
    child.unref();
    return { pid, startTime, ready };
  } catch (error) {
    // A daemon that is told to end gives back what it took already.
    await endStarted(child, options.graceMs);
    throw error;
  }
}

async function endStarted(child: ChildProcess, graceMs: number): Promise<void> {
  const pid = child.pid;
  const startTime = pid === undefined ? undefined : startTimeOf(pid);
  if (pid !== undefined && startTime !== undefined) await endProcess({ pid, startTime }, graceMs, "SIGINT");
}

/** Whether the process still runs; one that waits to be reaped does not. */
export function isRunning(identity: ProcessIdentity): boolean {
  return startTimeOf(identity.pid) === identity.startTime;
}

/** Asks the process to end by `signal`, waits, kills it when it takes too long. Resolves when it is gone. */
export async function endProcess(
  identity: ProcessIdentity,
  graceMs: number,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<void> {
  if (!send(identity, signal)) return;
  if (await isGoneWithin(identity, graceMs)) return;
  send(identity, "SIGKILL");
  if (!(await isGoneWithin(identity, 10_000))) {
    throw new PlatformError(
      "unavailable",
      `Cannot end process ${identity.pid}: it does not react to SIGKILL`,
    );
  }
}

/** Sends a signal unless the process is gone; tells whether it was there. */
function send(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isRunning(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false; // Ended meanwhile.
  }
}

/** When the process started, in clock ticks since boot; undefined when it is gone or a zombie. */
export function startTimeOf(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : Number(fields[19]);
  } catch {
    return undefined; // No such process.
  }
}

async function isGoneWithin(identity: ProcessIdentity, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms;
  while (isRunning(identity)) {
    if (performance.now() > deadline) return false;
    await delay(pollMs);
  }
  return true;
}

async function readyLine(child: ChildProcess, options: DaemonOptions, signal: AbortSignal): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  child.once("error", reject);
  child.once("exit", (code, killedBy) => reject(ended(options, killedBy ?? `with ${code}`)));
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const said = parseLine(line);
      if (said === undefined) reject(ended(options, `with the line "${line.slice(0, 200)}"`));
      else if (typeof said["progress"] === "string")
        options.onProgress(`${options.name}: ${said["progress"]}`);
      else resolve(said);
    });
  }
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => {
    const message = `Cannot start ${options.name}: not ready after ${options.readyMsMax} ms${tailOf(options)}`;
    reject(new PlatformError("unavailable", message));
  }, options.readyMsMax);
  try {
    signal.throwIfAborted();
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    child.removeAllListeners("exit");
  }
}

function parseLine(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // No JSON: the caller says what it got instead.
  }
}

function ended(options: DaemonOptions, how: string): PlatformError {
  return new PlatformError("unavailable", `Cannot start ${options.name}: it ended ${how}${tailOf(options)}`);
}

/** The end of the log, which says why. */
function tailOf(options: DaemonOptions): string {
  const text = readFileSync(options.logFile, "utf8").slice(-logTailBytes).trim();
  return text === "" ? "" : `\n${text}`;
}
