import { HybridCgroups } from "./cgroup-v1.ts";
import { UnifiedCgroups } from "./cgroup-v2.ts";
import { type CgroupMounts, type Cgroups, findCgroupMounts } from "./cgroups.ts";

/** The implementation that this host needs: v2 when it has all three controllers, else v1 for those that v1 has. */
export function detectCgroups(nodeId: string, mounts: CgroupMounts = findCgroupMounts()): Cgroups {
  return mounts.v1.size === 0
    ? new UnifiedCgroups(mounts.unified, nodeId)
    : new HybridCgroups(mounts, nodeId);
}
