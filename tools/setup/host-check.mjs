// Does this host do? Answers before anything is installed, so: no dependency, plain JavaScript for Node 20.
// `npm start`, `npm test` and `dsec doctor` all ask here.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, statfsSync } from "node:fs";
import { arch, availableParallelism, release, totalmem } from "node:os";
import { dirname, join } from "node:path";
import {
  findCgroups,
  isKernelNewEnough,
  judgeCapabilities,
  judgeCorePattern,
  judgeDistribution,
  judgeIdMap,
} from "./host-facts.mjs";

/** @typedef {import("./host-facts.mjs").CheckOutcome} CheckOutcome */

/**
 * @typedef {object} HostCheckOptions
 * @property {string} dataDir where layers and sandboxes will be kept; need not exist
 */

/**
 * One demand on the host. `run` leaves nothing behind and takes a few milliseconds; when it throws, the check has failed.
 * @typedef {{ name: string, remedy: string, run: (options: HostCheckOptions) => CheckOutcome }} HostCheck
 */

/** @typedef {CheckOutcome & { name: string, remedy: string }} CheckReport */

const gibibyte = 1024 ** 3;
const diskGibMin = 8;
const memoryGibMin = 2;

/** @param {string} found @returns {CheckOutcome} */
const ok = (found) => ({ kind: "ok", found });
/** @param {string} found @returns {CheckOutcome} */
const failed = (found) => ({ kind: "failed", found });

/**
 * Every demand, in the order in which they are worth reading.
 * @type {readonly HostCheck[]}
 */
const hostChecks = [
  {
    name: "root",
    remedy: "Run as root (sudo -i): the edge makes namespaces, mounts and cgroups.",
    run: () => (process.getuid?.() === 0 ? ok("uid 0") : failed(`uid ${process.getuid?.() ?? "unknown"}`)),
  },
  {
    name: "architecture",
    remedy: "Use an x86_64 machine: system call filters and builds are made for it alone so far.",
    run: () => (arch() === "x64" ? ok("x86_64") : failed(arch())),
  },
  {
    name: "distribution",
    remedy: "Use Debian 12: packages are installed by their Debian names and tested there.",
    run: () => judgeDistribution(readFileSync("/etc/os-release", "utf8")),
  },
  {
    name: "kernel",
    remedy: "Boot Linux 6.13 or newer: overlay must take its layers by descriptor, EROFS mount plain files.",
    run: () => (isKernelNewEnough(release()) ? ok(release()) : failed(release())),
  },
  {
    name: "capabilities",
    remedy: "Run on the machine itself, or give the container all capabilities (docker run --privileged).",
    run: () => judgeCapabilities(readFileSync("/proc/self/status", "utf8")),
  },
  {
    name: "user ids",
    remedy: "Run outside of any user namespace: sandboxes need ranges of ids that this one does not have.",
    run: () => judgeIdMap(readFileSync("/proc/self/uid_map", "utf8")),
  },
  {
    name: "namespaces",
    remedy:
      "Let root make namespaces and mount in them; a container's seccomp or AppArmor profile may forbid it.",
    run: probeNamespaces,
  },
  {
    name: "file systems",
    remedy: "Use a kernel with EROFS, overlay and tmpfs (modules erofs and overlay).",
    run: probeFileSystems,
  },
  {
    name: "seccomp",
    remedy: "Use a kernel with CONFIG_SECCOMP_FILTER.",
    run: () => (existsSync("/proc/sys/kernel/seccomp/actions_avail") ? ok("filters") : failed("no filters")),
  },
  {
    name: "cgroups",
    remedy:
      "Mount cgroup v2 with the controllers cpu, memory and pids; or those three as v1 and an empty v2 beside them " +
      "(mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified); all writable.",
    run: () => probeCgroups(readFileSync("/proc/self/mounts", "utf8")),
  },
  {
    name: "core dumps",
    remedy:
      "Set kernel.core_pattern to a file name (sysctl kernel.core_pattern=core): a pattern that starts a program " +
      "runs it on the host whenever something in a sandbox crashes.",
    run: () => judgeCorePattern(readFileSync("/proc/sys/kernel/core_pattern", "utf8")),
  },
  {
    name: "disk",
    remedy: `Free disk space, or set another data directory: at least ${diskGibMin} GiB are needed.`,
    run: ({ dataDir }) => measureDisk(dataDir),
  },
  {
    name: "memory",
    remedy: `Use a machine with at least ${memoryGibMin} GiB of memory.`,
    run: () => {
      const found = `${(totalmem() / gibibyte).toFixed(1)} GiB, ${availableParallelism()} cores`;
      return totalmem() >= memoryGibMin * gibibyte ? ok(found) : failed(found);
    },
  },
];

/**
 * Runs all checks. A check that throws has failed: what it reads is there on any host that will do.
 * @param {Partial<HostCheckOptions>} [options] `dataDir` defaults to /var/lib/dsec
 * @param {readonly HostCheck[]} [checks]
 * @returns {CheckReport[]}
 */
export function checkHost(options = {}, checks = hostChecks) {
  const complete = { dataDir: "/var/lib/dsec", ...options };
  return checks.map(({ name, remedy, run }) => {
    try {
      return { name, remedy, ...run(complete) };
    } catch (cause) {
      return { name, remedy, ...failed(cause instanceof Error ? cause.message : String(cause)) };
    }
  });
}

/**
 * One line for people: what was found and, unless it is fine, what to do.
 * @param {CheckReport} report
 */
export function describeReport({ kind, name, found, remedy }) {
  return kind === "ok" ? `ok       ${name}: ${found}` : `${kind.padEnd(8)} ${name}: ${found}. ${remedy}`;
}

/**
 * @param {string} mounts text of /proc/self/mounts
 * @returns {CheckOutcome}
 */
function probeCgroups(mounts) {
  const found = findCgroups(mounts);
  if ("missing" in found) return failed(`no ${found.missing.join(", no ")}`);
  const [first = ""] = found.directories;
  if (found.version === 2) {
    const controllers = readFileSync(join(first, "cgroup.controllers"), "utf8").trim().split(" ");
    const missing = ["cpu", "memory", "pids"].filter((name) => !controllers.includes(name));
    if (missing.length > 0) return failed(`v2 without the controllers ${missing.join(", ")}`);
  }
  for (const directory of found.directories) {
    const probe = join(directory, `dsec-probe-${process.pid}`);
    mkdirSync(probe);
    rmdirSync(probe);
  }
  return ok(found.version === 2 ? "v2" : "v1 with an empty v2 beside it");
}

/** @returns {CheckOutcome} */
function probeNamespaces() {
  const flags = [
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--net",
    "--ipc",
    "--uts",
    "--cgroup",
    "--fork",
  ];
  const probes = [
    [...flags, "mount", "-t", "tmpfs", "probe", "/mnt"],
    ["--user", "true"],
  ];
  for (const args of probes) {
    try {
      execFileSync("unshare", args, { stdio: ["ignore", "ignore", "pipe"], timeout: 5000, encoding: "utf8" });
    } catch (cause) {
      const { stderr } = /** @type {{ stderr?: string }} */ (cause);
      return failed(stderr?.trim() || String(cause));
    }
  }
  return ok("mount, pid, net, ipc, uts, cgroup, user");
}

/** @returns {CheckOutcome} */
function probeFileSystems() {
  const wanted = ["erofs", "overlay", "tmpfs"];
  const missing = wanted.filter((name) => !hasFileSystem(name));
  return missing.length === 0 ? ok(wanted.join(", ")) : failed(`no ${missing.join(", no ")}`);
}

/** @param {string} name */
function hasFileSystem(name) {
  const isListed = () => new RegExp(`\\b${name}$`, "m").test(readFileSync("/proc/filesystems", "utf8"));
  if (isListed()) return true;
  try {
    execFileSync("modprobe", [name], { stdio: "ignore", timeout: 5000 });
  } catch {
    // No such module, or no modprobe: the list says whether the kernel has it.
  }
  return isListed();
}

/**
 * @param {string} dataDir
 * @returns {CheckOutcome}
 */
function measureDisk(dataDir) {
  let directory = dataDir;
  while (!existsSync(directory) && dirname(directory) !== directory) directory = dirname(directory);
  const { bavail, bsize } = statfsSync(directory);
  const freeGib = (bavail * bsize) / gibibyte;
  const found = `${freeGib.toFixed(1)} GiB free at ${dataDir}`;
  return freeGib >= diskGibMin ? ok(found) : failed(found);
}
