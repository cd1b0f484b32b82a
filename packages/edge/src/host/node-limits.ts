import { readFileSync, writeFileSync } from "node:fs";

/** A limit that all sandboxes of the node share, and so one of them could use up. */
export interface NodeLimit {
  readonly name: string;
  /** Null where the kernel has no such setting. */
  readonly before: number | null;
  readonly after: number | null;
  readonly wanted: number;
}

/**
 * Wanted for 10,000 sandboxes. Each is bounded by itself besides: inotify instances in its user namespace, ptys by its devpts,
 * processes by its cgroup.
 */
const wanted: Readonly<Record<string, number>> = {
  "fs.inotify.max_user_instances": 1_048_576,
  "fs.inotify.max_user_watches": 8_388_608,
  "fs.inotify.max_queued_events": 65_536,
  "fs.file-max": 8_388_608,
  "kernel.pid_max": 4_194_304,
  "kernel.threads-max": 4_194_304,
  "kernel.pty.max": 65_536,
  "user.max_user_namespaces": 65_536,
  "user.max_pid_namespaces": 65_536,
  "user.max_mnt_namespaces": 65_536,
  "user.max_net_namespaces": 65_536,
  "user.max_ipc_namespaces": 65_536,
  "user.max_uts_namespaces": 65_536,
  "user.max_cgroup_namespaces": 65_536,
  "net.ipv4.neigh.default.gc_thresh1": 8_192,
  "net.ipv4.neigh.default.gc_thresh2": 32_768,
  "net.ipv4.neigh.default.gc_thresh3": 65_536,
};

/** The limits as they are. */
export function readNodeLimits(): NodeLimit[] {
  return Object.entries(wanted).map(([name, value]) => {
    const current = read(name);
    return { name, before: current, after: current, wanted: value };
  });
}

/** Raises what is below; never lowers. What the kernel refuses stays, and the report says so. */
export function raiseNodeLimits(): NodeLimit[] {
  return readNodeLimits().map((limit) => {
    if (limit.before === null || limit.before >= limit.wanted) return limit;
    try {
      writeFileSync(pathOf(limit.name), String(limit.wanted));
    } catch {
      // Refused (for example by a capability this root lacks): `after` tells.
    }
    return { ...limit, after: read(limit.name) };
  });
}

function read(name: string): number | null {
  try {
    return Number(readFileSync(pathOf(name), "latin1").trim());
  } catch {
    // A kernel without this setting.
    return null;
  }
}

function pathOf(name: string): string {
  return `/proc/sys/${name.replaceAll(".", "/")}`;
}
