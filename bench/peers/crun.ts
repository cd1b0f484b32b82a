import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Contender } from "../harness.ts";
import { newId, runLoops } from "./loops.ts";
import { unpackPackages } from "./packages.ts";
import { type ProgramEnvironment, runProgram } from "./program.ts";
import { makeRootFiles } from "./root-files.ts";

/**
 * The OCI configuration of a container that is like a sandbox of the platform: all namespaces, a user namespace with its
 * own ids, the usual mounts, few capabilities. What crun gets for nothing: no cgroups, no limits, no seccomp filter, and
 * one read-only root instead of a writable one for each.
 */
function ociConfiguration(rootDirectory: string, args: readonly string[]): unknown {
  const capabilities = ["CAP_KILL", "CAP_CHOWN", "CAP_SETUID", "CAP_SETGID"];
  const ids = [{ containerID: 0, hostID: 100_000, size: 65_536 }];
  const mount = (destination: string, type: string, ...options: string[]) => ({
    destination,
    type,
    source: type,
    options: ["nosuid", "noexec", ...options],
  });
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid: 0, gid: 0 },
      args,
      env: ["PATH=/bin"],
      cwd: "/",
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    root: { path: rootDirectory, readonly: true },
    hostname: "bench",
    mounts: [
      mount("/proc", "proc", "nodev"),
      mount("/dev", "tmpfs", "mode=755", "size=65536k"),
      mount("/dev/pts", "devpts", "newinstance", "ptmxmode=0666", "mode=0620"),
      mount("/dev/shm", "tmpfs", "nodev", "mode=1777", "size=65536k"),
      mount("/dev/mqueue", "mqueue", "nodev"),
    ],
    linux: {
      namespaces: ["pid", "network", "ipc", "uts", "mount", "user"].map((type) => ({ type })),
      uidMappings: ids,
      gidMappings: ids,
      maskedPaths: ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"],
      readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
    },
  };
}

/**
 * The mount namespace that crun runs in. It refuses a host whose second cgroup hierarchy has controllers, even when it
 * shall make no cgroups, so that hierarchy is taken away. It gives its standard streams to the container's root, so
 * `/dev/null` is another one than the host's, whose owner would change.
 */
const enterNamespace = `set -e
if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
mount -t tmpfs -o mode=755 tmpfs "$0"
mknod -m 666 "$0/null" c 1 3
mount --bind "$0/null" /dev/null
exec "$@"`;

interface Crun {
  /** argv before anything that runs crun. */
  readonly within: readonly [string, ...string[]];
  readonly argv: readonly string[];
  readonly env: ProgramEnvironment;
  /** Bundle whose container runs `true`. */
  readonly once: string;
  /** Bundle whose container lives until it is deleted. */
  readonly live: string;
}

/** Throws with the reason when crun cannot run here. */
async function openCrun(held: AsyncDisposableStack, signal: AbortSignal): Promise<Crun> {
  const env = await unpackPackages(["crun", "libyajl2"], signal);
  const folder = await mkdtemp(join(tmpdir(), "dsec-crun-"));
  held.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755); // The container's root is another user.
  const rootDirectory = join(folder, "root");
  await makeRootFiles(rootDirectory, signal);
  const bundle = async (name: string, args: readonly string[]): Promise<string> => {
    const directory = join(folder, name);
    await mkdir(directory);
    await writeFile(join(directory, "config.json"), JSON.stringify(ociConfiguration(rootDirectory, args)));
    return directory;
  };
  const devices = join(folder, "devices");
  await mkdir(devices);
  const unshare = ["unshare", "--mount", "--propagation", "private"] as const;
  const crun: Crun = {
    within: [...unshare, "bash", "-c", enterNamespace, devices],
    argv: ["crun", "--root", join(folder, "state"), "--cgroup-manager=disabled"],
    env,
    once: await bundle("once", ["/bin/true"]),
    live: await bundle("live", ["/bin/sleep", "infinity"]),
  };
  await runProgram([...crun.within, ...crun.argv, "run", "--bundle", crun.once, "probe"], { env, signal });
  return crun;
}

function loops(name: string, share: number, argv: readonly string[], crun: Crun): Omit<Contender, symbol> {
  return {
    name,
    share,
    run: (operations, inFlight, signal) =>
      runLoops(argv, crun.env, { operations, inFlight, within: crun.within }, signal),
  };
}

/** `crun run` of `true` as the container's only process. */
export async function crunRun(signal: AbortSignal): Promise<Contender> {
  await using held = new AsyncDisposableStack();
  const crun = await openCrun(held, signal);
  const argv = [...crun.argv, "run", "--bundle", crun.once, newId];
  const owned = held.move();
  return { ...loops("crun run", 0.5, argv, crun), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The same as a sandbox: a container that lives, `true` in it as a further process, and its end. */
export async function crunCycle(signal: AbortSignal): Promise<Contender> {
  await using held = new AsyncDisposableStack();
  const crun = await openCrun(held, signal);
  const cycle =
    'bundle=$1 id=$2; shift 2; "$@" run -d -b "$bundle" "$id" && "$@" exec "$id" /bin/true; code=$?; "$@" delete -f "$id"; exit $code';
  const argv = ["bash", "-c", cycle, "bash", crun.live, newId, ...crun.argv];
  const owned = held.move();
  return {
    ...loops("crun run, exec, delete", 0.3, argv, crun),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** `crun exec` of `true` in a container that lives. */
export async function crunExec(signal: AbortSignal): Promise<Contender> {
  await using held = new AsyncDisposableStack();
  const crun = await openCrun(held, signal);
  // Its process would hold on to the pipes of a run whose output is awaited.
  const quiet = ["bash", "-c", 'exec "$@" </dev/null >/dev/null 2>&1', "bash"];
  const start = [
    ...crun.within,
    ...quiet,
    ...crun.argv,
    "run",
    "--detach",
    "--bundle",
    crun.live,
    "live",
  ] as const;
  await runProgram(start, { env: crun.env, signal });
  held.defer(async () => {
    const unhurried = AbortSignal.timeout(30_000); // The run's own signal may have ended it.
    await runProgram([...crun.within, ...crun.argv, "delete", "--force", "live"], {
      env: crun.env,
      signal: unhurried,
    });
  });
  const argv = [...crun.argv, "exec", "live", "/bin/true"];
  const owned = held.move();
  return { ...loops("crun exec", 0.25, argv, crun), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
