import { existsSync, readFileSync } from "node:fs";
import type { SandboxId } from "@dsec/contracts";

/** Ceilings of one sandbox, on all of its processes together. */
export interface CgroupLimits {
  readonly cpuCores: number;
  readonly memoryMib: number;
  readonly pidsMax: number;
}

/** The groups of one sandbox. Limits sit on one group per controller; commands are groups below `commandsDirectory`. */
export interface SandboxCgroups {
  /** `cgroup.procs` files that the sandbox's runner joins. */
  readonly runnerProcs: readonly string[];
  /** Directory on the v2 hierarchy in which chronus makes a group per command. */
  readonly commandsDirectory: string;
  /** File with the `oom_kill` counter. */
  readonly oomFile: string | null;
  /** SIGKILL to every process of the sandbox but its init. */
  killAll(): void;
  /** A process of the sandbox (not its init) is alive. */
  populated(): boolean;
  /** Waits until empty, takes the memory back, removes the groups. Idempotent. */
  remove(signal: AbortSignal): Promise<void>;
  /** Bytes charged now. */
  memoryBytes(): number;
  /** How often the kernel's OOM killer ended a process of the sandbox. */
  oomKills(): number;
}

/** The node's part of the cgroup hierarchies; everything of ours is below a group `dsec/<nodeId>`. */
export interface Cgroups {
  /** Makes the node's groups; leaves those of living sandboxes alone. */
  prepareNode(): void;
  /** `cgroup.procs` files of the group of the spawner and the inits. */
  agentsProcs(): readonly string[];
  create(id: SandboxId, limits: CgroupLimits): SandboxCgroups;
  /** The groups of a sandbox that lived before this edge. */
  adopt(id: SandboxId): SandboxCgroups;
  /** Every sandbox that has a group on any hierarchy. */
  list(): SandboxId[];
  /** Removes the node's groups; all sandboxes and the spawner must be gone. */
  removeNode(): Promise<void>;
}

export type LimitController = "memory" | "pids" | "cpu";
export const limitControllers: readonly LimitController[] = ["memory", "pids", "cpu"];

/** Where the hierarchies are mounted. `v1` has only the controllers that are not on v2. */
export interface CgroupMounts {
  readonly unified: string;
  readonly unifiedControllers: ReadonlySet<string>;
  readonly v1: ReadonlyMap<LimitController, string>;
}

/** Finds the hierarchies in /proc/self/mounts. Throws when v2 or one of memory, pids and cpu is nowhere. */
export function findCgroupMounts(mounts: string = readFileSync("/proc/self/mounts", "utf8")): CgroupMounts {
  const v1 = new Map<LimitController, string>();
  let unified: string | undefined;
  for (const line of mounts.split("\n")) {
    const [, path, type, options] = line.split(" ");
    if (path === undefined) continue;
    if (type === "cgroup2") unified ??= path;
    if (type !== "cgroup" || options === undefined) continue;
    for (const controller of limitControllers) {
      if (options.split(",").includes(controller)) v1.set(controller, path);
    }
  }
  if (unified === undefined)
    throw new Error(
      "no cgroup v2 hierarchy is mounted; mount one at /sys/fs/cgroup or beside v1 at /sys/fs/cgroup/unified",
    );
  const file = `${unified}/cgroup.controllers`;
  const unifiedControllers = new Set(existsSync(file) ? readFileSync(file, "utf8").trim().split(/\s+/) : []);
  const absent = limitControllers.filter((name) => !v1.has(name) && !unifiedControllers.has(name));
  if (absent.length > 0) throw new Error(`no cgroup hierarchy has the controllers ${absent.join(", ")}`);
  return { unified, unifiedControllers, v1 };
}
