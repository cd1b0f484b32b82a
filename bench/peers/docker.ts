import { spawn } from "node:child_process";
import { once } from "node:events";
import { glob, mkdtemp, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Contender } from "../harness.ts";
import { runLoops } from "./loops.ts";
import { unpackPackages } from "./packages.ts";
import { type ProgramEnvironment, runProgram } from "./program.ts";
import { makeRootFiles } from "./root-files.ts";

const packages = ["docker.io", "containerd", "runc", "libdevmapper1.02.1"] as const;
const startTimeoutMs = 60_000;
const cgroupParent = "dsec-bench-docker";

/** The daemon has its own process and mount namespaces: whatever it leaves running or mounted ends with it. */
const within = [
  "unshare",
  "--pid",
  "--fork",
  "--kill-child",
  "--mount",
  "--propagation",
  "private",
  "--mount-proc",
] as const;

/**
 * `docker run --rm --network none` of `true`, by a daemon of its own: private socket, data and cgroup parent, no
 * bridge and no packet filter rules. Throws with the reason when that cannot run here.
 */
export async function dockerRun(signal: AbortSignal): Promise<Contender> {
  await using held = new AsyncDisposableStack();
  const env = await unpackPackages(packages, signal);
  const folder = await mkdtemp(join(tmpdir(), "dsec-docker-"));
  held.defer(() => rm(folder, { recursive: true, force: true }));
  await startDaemon(folder, env, held, signal);

  const docker = ["docker", "--host", `unix://${folder}/docker.sock`] as const;
  await makeRootFiles(join(folder, "root"), signal);
  const archive = join(folder, "root.tar");
  await runProgram(["tar", "-C", join(folder, "root"), "-cf", archive, "."], { env, signal });
  await runProgram([...docker, "import", archive, "bench"], { env, signal });
  const argv = [...docker, "run", "--rm", "--network", "none", "bench", "/bin/true"] as const;
  await runProgram(argv, { env, signal });

  const owned = held.move();
  return {
    name: "docker run",
    share: 0.05,
    run: (operations, inFlight, stop) => runLoops(argv, env, { operations, inFlight }, stop),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function startDaemon(
  folder: string,
  env: ProgramEnvironment,
  held: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<void> {
  // Its own empty file, so that one of the host has no say.
  const configuration = join(folder, "daemon.json");
  await writeFile(configuration, "{}");
  const settings = [
    "--host",
    `unix://${folder}/docker.sock`,
    "--pidfile",
    join(folder, "docker.pid"),
    "--data-root",
    join(folder, "data"),
    "--exec-root",
    join(folder, "exec"),
    "--bridge=none",
    "--iptables=false",
    "--ip-forward=false",
    "--ip-masq=false",
    "--cgroup-parent",
    `/${cgroupParent}`,
    "--config-file",
    configuration,
  ];
  const child = spawn(within[0], [...within.slice(1), "dockerd", ...settings], {
    env: { ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  // One that could not even be started has no exit; its error ends the wait for readiness below.
  exited.catch(() => undefined);
  held.defer(async () => {
    await terminateChildOf(child.pid);
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) await exited;
    await removeCgroups();
  });

  const lines = createInterface({ input: child.stderr });
  const last: string[] = [];
  const ready = new Promise<void>((resolve) => {
    lines.on("line", (line) => {
      last.push(line);
      if (last.length > 5) last.shift();
      if (line.includes("API listen on")) resolve();
    });
  });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]);
  const stopped = Promise.race([
    once(child, "exit", { signal: limit }),
    once(child, "error", { signal: limit }),
  ]);
  const failed = stopped.then(() => {
    throw new Error(`dockerd ended: ${last.join(" ").slice(-500)}`);
  });
  await Promise.race([ready, failed]);
  // From here on its end is looked at when it is stopped.
  failed.catch(() => undefined);
}

/** Asks the daemon to end: it is the one child of `unshare`. */
async function terminateChildOf(pid: number | undefined): Promise<void> {
  if (pid === undefined) return;
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => ""); // Ended before.
  for (const child of children.split(" ").filter(Boolean)) process.kill(Number(child), "SIGTERM");
}

/** Takes the daemon's cgroups away, deepest first; what is not empty or not there stays. */
async function removeCgroups(): Promise<void> {
  const mounts = await mountPoints((line) => / - cgroup2? /.test(line));
  for (const mount of mounts) {
    const folders: string[] = [];
    for await (const folder of glob(`${mount}/{${cgroupParent},${cgroupParent}/**}/`)) folders.push(folder);
    for (const folder of folders.toSorted().toReversed()) await rmdir(folder).catch(() => undefined);
  }
}

/** Mount points of this namespace whose line in mountinfo matches. */
async function mountPoints(matches: (line: string) => boolean): Promise<string[]> {
  const lines = (await readFile("/proc/self/mountinfo", "utf8")).split("\n");
  return lines.filter(matches).flatMap((line) => line.split(" ")[4] ?? []);
}
