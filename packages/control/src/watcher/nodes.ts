import { type Heartbeat, limits, type NodeHealth, type NodeView } from "@dsec/contracts";
import type { PlacementNode } from "../placement/place.ts";
import type { StoredNode } from "../store/nodes.ts";

interface Watched {
  stored: StoredNode;
  heartbeat: Heartbeat | undefined;
  heardAtMs: number | undefined;
  recent: number;
}

/** Health and load of every node: soft state, made again from heartbeats within seconds of a start. */
export class NodeWatcher {
  readonly #nodes = new Map<string, Watched>();
  readonly #startedAtMs: number;
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#startedAtMs = now();
  }

  /** The nodes that have joined, as the store knows them. */
  know(nodes: readonly StoredNode[]): void {
    for (const stored of nodes) {
      const known = this.#nodes.get(stored.id);
      if (known === undefined)
        this.#nodes.set(stored.id, { stored, heartbeat: undefined, heardAtMs: undefined, recent: 0 });
      else known.stored = stored;
    }
  }

  /** Takes a heartbeat; one that is older than the last (by sequence, within a process) is dropped. */
  hear(heartbeat: Heartbeat): void {
    const node = this.#nodes.get(heartbeat.nodeId);
    if (node === undefined) return;
    const last = node.heartbeat;
    if (last !== undefined && last.bootId === heartbeat.bootId && last.sequence >= heartbeat.sequence) return;
    node.heartbeat = heartbeat;
    node.heardAtMs = this.#now();
    node.recent = 0;
  }

  /** A sandbox was placed on the node: the next heartbeat shows it. */
  placed(id: string): void {
    const node = this.#nodes.get(id);
    if (node !== undefined) node.recent += 1;
  }

  isKnown(id: string): boolean {
    return this.#nodes.has(id);
  }

  /** Where the node's edge serves now. */
  urlOf(id: string): string | undefined {
    const node = this.#nodes.get(id);
    return node?.heartbeat?.url ?? node?.stored.url;
  }

  /** Where the node's edge serves instances on its own machine, as it says. */
  localSocketOf(id: string): string | undefined {
    return this.#nodes.get(id)?.heartbeat?.localSocket;
  }

  /** A node that was never heard counts its silence from the start of this instance. */
  healthOf(id: string): NodeHealth {
    const node = this.#nodes.get(id);
    const silentMs = this.#now() - (node?.heardAtMs ?? this.#startedAtMs);
    if (node === undefined || silentMs >= limits.lostAfterPeriods * limits.heartbeatPeriodMs) return "lost";
    if (node.heardAtMs === undefined || silentMs >= limits.suspectAfterPeriods * limits.heartbeatPeriodMs)
      return "suspect";
    return "healthy";
  }

  ids(): string[] {
    return [...this.#nodes.keys()];
  }

  /** What placement decides on. */
  forPlacement(): PlacementNode[] {
    return [...this.#nodes.values()].map((node) => ({
      id: node.stored.id,
      health: this.healthOf(node.stored.id),
      backends: node.heartbeat?.backends ?? [],
      load: node.heartbeat?.load ?? null,
      recent: node.recent,
    }));
  }

  views(): NodeView[] {
    return [...this.#nodes.values()].map((node) => ({
      id: node.stored.id,
      hostname: node.stored.hostname,
      url: this.urlOf(node.stored.id) ?? node.stored.url,
      health: this.healthOf(node.stored.id),
      lastHeartbeatAtMs: node.heardAtMs ?? null,
      load: node.heartbeat?.load ?? null,
      backends: node.heartbeat?.backends ?? [],
      capabilities: node.heartbeat?.capabilities ?? [],
    }));
  }
}
