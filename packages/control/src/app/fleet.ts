import {
  type CapabilityList,
  LayerList,
  type LayerManifest,
  LayerManifest as LayerManifestSchema,
  type ListSandboxes,
  PlatformError,
  type Sandbox,
  SandboxPage,
} from "@dsec/contracts";
import { parse } from "@dsec/kit";
import type { Principal } from "../iam/decide.ts";
import type { Edges } from "../nodes/edges.ts";
import type { NodeWatcher } from "../watcher/nodes.ts";

export interface FleetCall {
  readonly principal: Principal;
  readonly requestId: string;
  readonly signal: AbortSignal;
}

/** Questions that all nodes answer together. */
export class Fleet {
  readonly #watcher: NodeWatcher;
  readonly #edges: Edges;

  constructor(watcher: NodeWatcher, edges: Edges) {
    this.#watcher = watcher;
    this.#edges = edges;
  }

  /**
   * A page over all nodes, by id ascending; `cursor` is the last id of the page before. Lost nodes are left out; one that should
   * answer and does not fails the list, which would else be wrong.
   */
  async listSandboxes(call: FleetCall, query: ListSandboxes): Promise<SandboxPage> {
    const text = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      for (const item of Array.isArray(value) ? value : [value]) text.append(name, String(item));
    }
    const pages = await this.#ask(call, `/v1/sandboxes?${text.toString()}`, (answer) =>
      parse(SandboxPage, answer, "page"),
    );
    const items = pages
      .flatMap((page) => page.items)
      .toSorted(byId)
      .slice(0, query.limit);
    const more =
      pages.some((page) => page.next !== null) ||
      pages.reduce((sum, page) => sum + page.items.length, 0) > items.length;
    return { items, next: more ? (items.at(-1)?.id ?? null) : null };
  }

  /** Layers of every node, each once. */
  async listLayers(call: FleetCall): Promise<LayerManifest[]> {
    const lists = await this.#ask(call, "/v1/layers", (answer) => parse(LayerList, answer, "list of layers"));
    return [...new Map(lists.flatMap((list) => list.items).map((layer) => [layer.id, layer])).values()];
  }

  /** Every healthy edge imports the directory; all must make the same layer. */
  async importLayer(call: FleetCall, json: unknown): Promise<LayerManifest> {
    const nodes = this.#watcher.ids().filter((id) => this.#watcher.healthOf(id) === "healthy");
    const layers: LayerManifest[] = [];
    for (const id of nodes) {
      const answer = await this.#edges
        .find(id)
        ?.json({ ...call, method: "POST", path: "/v1/layers:import", json });
      layers.push(parse(LayerManifestSchema, answer, "manifest"));
    }
    const [first] = layers;
    if (first === undefined)
      throw new PlatformError("unavailable", "Cannot import a layer: no node is healthy", {
        retryAfterMs: 1_000,
      });
    return first;
  }

  /** A capability is the fleet's when a node that is not lost has it. */
  capabilities(): CapabilityList {
    const byName = new Map<string, CapabilityList["items"][number]>();
    for (const node of this.#watcher.views().filter((view) => view.health !== "lost")) {
      for (const capability of node.capabilities) {
        if (byName.get(capability.name)?.available !== true) byName.set(capability.name, capability);
      }
    }
    return { items: [...byName.values()] };
  }

  async #ask<Answer>(call: FleetCall, path: string, read: (answer: unknown) => Answer): Promise<Answer[]> {
    const nodes = this.#watcher.ids().filter((id) => this.#watcher.healthOf(id) !== "lost");
    return await Promise.all(
      nodes.map(async (id) => {
        try {
          return read(await this.#edges.find(id)?.json({ ...call, method: "GET", path }));
        } catch (cause) {
          if (cause instanceof PlatformError) throw cause;
          call.signal.throwIfAborted();
          throw this.#edges.unreachable(id, cause);
        }
      }),
    );
  }
}

function byId(one: Sandbox, two: Sandbox): number {
  return one.id < two.id ? -1 : 1;
}
