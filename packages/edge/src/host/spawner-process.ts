import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  watch,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { scrubbedEnvironment } from "./process.ts";
import { isSame, startTimeOf, whenGone } from "./process-identity.ts";

/** The spawner of a node: a process that outlives the edge. */
export interface SpawnerProcess {
  readonly pid: number;
  readonly startTime: number;
  readonly socketPath: string;
}

export interface SpawnerOptions {
  readonly binary: string;
  readonly runDirectory: string;
  /** Groups that it joins; the inits that it forks are born there. */
  readonly cgroupProcs: readonly string[];
  /** Its standard error is appended here. */
  readonly logFile: string;
}

const socketName = "spawner.sock";

/** Starts `chronus spawner` and resolves once it listens. Rejects when it ends before that, or on abort (then it is killed). */
export async function startSpawner(options: SpawnerOptions, signal: AbortSignal): Promise<SpawnerProcess> {
  const socketPath = join(options.runDirectory, socketName);
  rmSync(socketPath, { force: true }); // Of a spawner that was killed.
  const log = openSync(options.logFile, "a", 0o600);
  const child = spawn(
    options.binary,
    ["spawner", "--socket", socketPath, "--run-directory", options.runDirectory],
    {
      detached: true,
      env: scrubbedEnvironment,
      stdio: ["ignore", "ignore", log],
      cwd: "/",
    },
  );
  closeSync(log);
  const ended = new Promise<never>((_resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, killedBy) =>
      reject(new Error(`the spawner ended with ${killedBy ?? `code ${code}`}; see ${options.logFile}`)),
    );
  });
  // Observed by the race below only; an end later is seen by the channel to the spawner.
  ended.catch(() => undefined);
  try {
    const { pid } = child;
    if (pid === undefined) return await ended;
    for (const file of options.cgroupProcs) writeFileSync(file, String(pid));
    await Promise.race([untilExists(options.runDirectory, socketName, signal), ended]);
    child.unref();
    return { pid, startTime: startTimeOf(pid) ?? 0, socketPath };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** The spawner of an earlier edge of this run directory, if it is alive. */
export function findSpawner(runDirectory: string): SpawnerProcess | undefined {
  const socketPath = join(runDirectory, socketName);
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const pid = Number(name);
    const startTime = startTimeOf(pid);
    if (
      startTime !== undefined &&
      argumentsOf(pid).includes(socketPath) &&
      argumentsOf(pid).includes("spawner")
    ) {
      return { pid, startTime, socketPath };
    }
  }
  return undefined;
}

/** Kills a spawner and waits until it is gone. Its sandboxes live on. */
export async function killSpawner(spawner: SpawnerProcess, signal: AbortSignal): Promise<void> {
  if (isSame(spawner.pid, spawner.startTime)) process.kill(spawner.pid, "SIGKILL");
  await whenGone(spawner.pid, spawner.startTime, signal);
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    // It ended meanwhile.
    return [];
  }
}

async function untilExists(directory: string, name: string, signal: AbortSignal): Promise<void> {
  const watcher = watch(directory);
  try {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (existsSync(join(directory, name))) resolve();
      };
      watcher.on("change", look);
      watcher.on("error", reject);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      look();
    });
  } finally {
    watcher.close();
  }
}
