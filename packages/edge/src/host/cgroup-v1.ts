import { existsSync, writeFileSync } from "node:fs";
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
import { enableUnified, limitUnified } from "./cgroup-v2.ts";
import {
  type CgroupLimits,
  type CgroupMounts,
  type Cgroups,
  type LimitController,
  limitControllers,
  type SandboxCgroups,
} from "./cgroups.ts";

const cpuPeriodUs = 100_000;
const bytesPerMib = 1024 * 1024;

/**
 * Limits on v1 hierarchies for the controllers that are there, groups of commands on the v2 hierarchy, which needs no controllers for that (clone into a group,
 * `cgroup.kill`, `cgroup.events`).
 */
export class HybridCgroups implements Cgroups {
  readonly #unified: string;
  readonly #mount: string;
  readonly #limits: ReadonlyMap<LimitController, string>;
  /** Controllers that only v2 has here. */
  readonly #onUnified: readonly LimitController[];

  constructor(mounts: CgroupMounts, nodeId: string) {
    this.#mount = mounts.unified;
    this.#onUnified = limitControllers.filter((name) => !mounts.v1.has(name));
    this.#unified = join(mounts.unified, "dsec", nodeId);
    this.#limits = new Map([...mounts.v1].map(([name, path]) => [name, join(path, "dsec", nodeId)]));
  }

  prepareNode(): void {
    for (const root of this.#roots()) {
      makeGroup(join(root, "agents"));
      makeGroup(join(root, "sb"));
    }
    enableUnified(this.#mount, this.#unified, this.#onUnified);
  }

  agentsProcs(): readonly string[] {
    return this.#roots().map((root) => join(root, "agents", "cgroup.procs"));
  }

  create(id: SandboxId, limits: CgroupLimits): SandboxCgroups {
    const groups = this.#groups(id);
    makeGroup(join(groups.unified, "run"));
    makeGroup(join(groups.unified, "runner"));
    for (const [controller, group] of groups.limits) {
      makeGroup(group);
      limit(controller, group, limits);
    }
    for (const controller of this.#onUnified) limitUnified(controller, groups.unified, limits);
    return new HybridSandboxCgroups(groups.unified, groups.limits);
  }

  adopt(id: SandboxId): SandboxCgroups {
    const groups = this.#groups(id);
    return new HybridSandboxCgroups(groups.unified, groups.limits);
  }

  list(): SandboxId[] {
    return [...new Set(this.#roots().flatMap((root) => sandboxGroups(join(root, "sb"))))];
  }

  async removeNode(): Promise<void> {
    for (const root of this.#roots()) {
      await removeGroup(root, AbortSignal.timeout(5_000));
      removeParent(root);
    }
  }

  #roots(): string[] {
    return [this.#unified, ...this.#limits.values()];
  }

  #groups(id: SandboxId): { unified: string; limits: ReadonlyMap<LimitController, string> } {
    return {
      unified: join(this.#unified, "sb", id),
      limits: new Map([...this.#limits].map(([name, root]) => [name, join(root, "sb", id)])),
    };
  }
}

class HybridSandboxCgroups implements SandboxCgroups {
  readonly #unified: string;
  readonly #limits: ReadonlyMap<LimitController, string>;
  readonly #memory: string | undefined;
  readonly runnerProcs: readonly string[];
  readonly commandsDirectory: string;
  readonly oomFile: string;

  constructor(unified: string, limits: ReadonlyMap<LimitController, string>) {
    this.#unified = unified;
    this.#limits = limits;
    this.#memory = limits.get("memory");
    this.runnerProcs = [join(unified, "runner"), ...limits.values()].map((group) =>
      join(group, "cgroup.procs"),
    );
    this.commandsDirectory = join(unified, "run");
    this.oomFile =
      this.#memory === undefined ? join(unified, "memory.events") : join(this.#memory, "memory.oom_control");
  }

  killAll(): void {
    const kill = join(this.#unified, "cgroup.kill");
    if (existsSync(kill)) writeFileSync(kill, "1");
  }

  populated(): boolean {
    return isPopulated(this.#unified);
  }

  async remove(signal: AbortSignal): Promise<void> {
    await removeGroup(this.#unified, signal);
    // Page cache stays charged to a removed group and pins it for ever: give it back first.
    if (this.#memory !== undefined && existsSync(this.#memory))
      await writeFile(join(this.#memory, "memory.force_empty"), "0");
    for (const group of this.#limits.values()) await removeGroup(group, signal);
  }

  memoryBytes(): number {
    return this.#memory === undefined
      ? readNumber(this.#unified, "memory.current")
      : readNumber(this.#memory, "memory.usage_in_bytes");
  }

  oomKills(): number {
    return this.#memory === undefined
      ? readNumber(this.#unified, "memory.events", "oom_kill")
      : readNumber(this.#memory, "memory.oom_control", "oom_kill");
  }
}

function limit(controller: LimitController, group: string, limits: CgroupLimits): void {
  switch (controller) {
    case "memory":
      setting(group, "memory.limit_in_bytes", limits.memoryMib * bytesPerMib);
      return;
    case "pids":
      setting(group, "pids.max", limits.pidsMax);
      return;
    case "cpu":
      setting(group, "cpu.cfs_period_us", cpuPeriodUs);
      setting(group, "cpu.cfs_quota_us", Math.max(1_000, Math.round(limits.cpuCores * cpuPeriodUs)));
      return;
  }
}
