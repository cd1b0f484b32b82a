import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@dsec/contracts";
import {
  isPopulated,
  makeGroup,
  readNumber,
  removeGroup,
  removeParent,
  sandboxGroups,
  setting,
} from "./cgroup-files.ts";
import {
  type CgroupLimits,
  type Cgroups,
  type LimitController,
  limitControllers,
  type SandboxCgroups,
} from "./cgroups.ts";

const cpuPeriodUs = 100_000;
const bytesPerMib = 1024 * 1024;

/** Everything on v2: `sb/<id>` has the limits; its children `runner` and `run/<command>` have the processes. */
export class UnifiedCgroups implements Cgroups {
  readonly #mount: string;
  readonly #root: string;

  constructor(mount: string, nodeId: string) {
    this.#mount = mount;
    this.#root = join(mount, "dsec", nodeId);
  }

  prepareNode(): void {
    makeGroup(join(this.#root, "agents"));
    makeGroup(join(this.#root, "sb"));
    enableUnified(this.#mount, this.#root, limitControllers);
  }

  agentsProcs(): readonly string[] {
    return [join(this.#root, "agents", "cgroup.procs")];
  }

  create(id: SandboxId, limits: CgroupLimits): SandboxCgroups {
    const group = join(this.#root, "sb", id);
    makeGroup(join(group, "run"));
    makeGroup(join(group, "runner"));
    for (const controller of limitControllers) limitUnified(controller, group, limits);
    return new UnifiedSandboxCgroups(group);
  }

  adopt(id: SandboxId): SandboxCgroups {
    return new UnifiedSandboxCgroups(join(this.#root, "sb", id));
  }

  list(): SandboxId[] {
    return sandboxGroups(join(this.#root, "sb"));
  }

  async removeNode(): Promise<void> {
    await removeGroup(this.#root, AbortSignal.timeout(5_000));
    removeParent(this.#root);
  }
}

class UnifiedSandboxCgroups implements SandboxCgroups {
  readonly #group: string;
  readonly runnerProcs: readonly string[];
  readonly commandsDirectory: string;
  readonly oomFile: string;

  constructor(group: string) {
    this.#group = group;
    this.runnerProcs = [join(group, "runner", "cgroup.procs")];
    this.commandsDirectory = join(group, "run");
    this.oomFile = join(group, "memory.events");
  }

  killAll(): void {
    const kill = join(this.#group, "cgroup.kill");
    if (existsSync(kill)) writeFileSync(kill, "1");
  }

  populated(): boolean {
    return isPopulated(this.#group);
  }

  async remove(signal: AbortSignal): Promise<void> {
    const current = this.memoryBytes();
    if (current > 0) {
      try {
        await writeFile(join(this.#group, "memory.reclaim"), String(current));
      } catch {
        // EAGAIN: less than all could be reclaimed; the rest goes with the files.
      }
    }
    await removeGroup(this.#group, signal);
  }

  memoryBytes(): number {
    return readNumber(this.#group, "memory.current");
  }

  oomKills(): number {
    return readNumber(this.#group, "memory.events", "oom_kill");
  }
}

/** Lets the groups below `root`/sb have limits of these controllers. */
export function enableUnified(mount: string, root: string, controllers: readonly LimitController[]): void {
  for (const group of [mount, join(mount, "dsec"), root, join(root, "sb")]) {
    const enabled = new Set(readFileSync(join(group, "cgroup.subtree_control"), "utf8").trim().split(/\s+/));
    const absent = controllers.filter((name) => !enabled.has(name));
    if (absent.length > 0)
      setting(group, "cgroup.subtree_control", absent.map((name) => `+${name}`).join(" "));
  }
}

/** Sets the limit of one controller on a v2 group. */
export function limitUnified(controller: LimitController, group: string, limits: CgroupLimits): void {
  switch (controller) {
    case "memory":
      setting(group, "memory.max", limits.memoryMib * bytesPerMib);
      return;
    case "pids":
      setting(group, "pids.max", limits.pidsMax);
      return;
    case "cpu":
      setting(
        group,
        "cpu.max",
        `${Math.max(1_000, Math.round(limits.cpuCores * cpuPeriodUs))} ${cpuPeriodUs}`,
      );
      return;
  }
}
