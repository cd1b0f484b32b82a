// What the kernel's and the distribution's own texts say about this host. Pure: text in, judgement out.

/**
 * What one check found. `ok`: fine. `warning`: works, but not where the platform is tested. `failed`: will not do.
 * @typedef {{ kind: "ok" | "warning" | "failed", found: string }} CheckOutcome
 */

/** Bit numbers in CapEff of the capabilities that the edge and its spawner use. */
const capabilityBits = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_SETPCAP: 8,
  CAP_NET_ADMIN: 12,
  CAP_SYS_CHROOT: 18,
  CAP_SYS_PTRACE: 19,
  CAP_SYS_ADMIN: 21,
  CAP_MKNOD: 27,
};

/**
 * Debian 12 is where the platform is tested; later Debian and Ubuntu have the same package names.
 * @param {string} osRelease text of /etc/os-release
 * @returns {CheckOutcome}
 */
export function judgeDistribution(osRelease) {
  /** @param {string} key */
  const field = (key) => new RegExp(`^${key}="?([^"\\n]*)"?$`, "m").exec(osRelease)?.[1] ?? "";
  const found = field("PRETTY_NAME") || "an unknown distribution";
  const version = Number(field("VERSION_ID"));
  if (field("ID") === "debian" && version === 12) return { kind: "ok", found };
  const isLater =
    (field("ID") === "debian" && version > 12) || (field("ID") === "ubuntu" && version >= 24.04);
  return { kind: isLater ? "warning" : "failed", found };
}

/**
 * Linux 6.13 or newer.
 * @param {string} kernelRelease as `uname -r` prints it
 */
export function isKernelNewEnough(kernelRelease) {
  const [major = 0, minor = 0] = kernelRelease.split(/[.-]/).map(Number);
  return major > 6 || (major === 6 && minor >= 13);
}

/**
 * @param {string} status text of /proc/self/status
 * @returns {CheckOutcome}
 */
export function judgeCapabilities(status) {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  const missing = Object.entries(capabilityBits)
    .filter(([, bit]) => (effective & (1n << BigInt(bit))) === 0n)
    .map(([name]) => name);
  if (missing.length === 0) return { kind: "ok", found: "all that are needed" };
  return { kind: "failed", found: `missing ${missing.join(", ")}` };
}

/**
 * @param {string} uidMap text of /proc/self/uid_map
 * @returns {CheckOutcome}
 */
export function judgeIdMap(uidMap) {
  if (/^\s*0\s+0\s+4294967295\s*$/.test(uidMap)) return { kind: "ok", found: "all of them" };
  return { kind: "failed", found: `only a part: ${uidMap.trim().replaceAll(/\s+/g, " ")}` };
}

/**
 * The kernel starts the program of a pattern with "|" as root on the host, in no sandbox, with the memory of what crashed as input.
 * @param {string} pattern text of /proc/sys/kernel/core_pattern
 * @returns {CheckOutcome}
 */
export function judgeCorePattern(pattern) {
  const program = pattern.trim();
  if (!program.startsWith("|")) return { kind: "ok", found: "no program is started" };
  return { kind: "warning", found: `a crash starts ${program.slice(1)}` };
}

/**
 * Which hierarchies the platform would use. On v1 the controllers limit, and an empty v2 hierarchy groups commands.
 * @param {string} mounts text of /proc/self/mounts
 * @returns {{ version: 1 | 2, directories: string[] } | { missing: string[] }}
 */
export function findCgroups(mounts) {
  const entries = mounts
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, directory = "", type = "", flags = ""]) => ({ directory, type, flags: flags.split(",") }));
  const unified = entries.find(({ type }) => type === "cgroup2")?.directory;
  const limits = ["cpu", "memory", "pids"].map((name) => ({
    name,
    directory: entries.find(({ type, flags }) => type === "cgroup" && flags.includes(name))?.directory,
  }));
  const directories = limits.flatMap(({ directory }) => (directory === undefined ? [] : [directory]));
  if (unified !== undefined && directories.length === 0) return { version: 2, directories: [unified] };
  const missing = limits
    .filter(({ directory }) => directory === undefined)
    .map(({ name }) => `controller ${name}`);
  if (unified === undefined) return { missing: ["cgroup v2 hierarchy", ...missing] };
  return missing.length > 0 ? { missing } : { version: 1, directories: [...directories, unified] };
}
