import { PlatformError } from "@dsec/contracts";
import type { ClaimSigner } from "@dsec/kit";
import type { NodeWatcher } from "../watcher/nodes.ts";
import { type ClientIdentity, EdgeClient } from "./edge-client.ts";

const retryAfterMs = 1_000;

/** The edges of the fleet, one client each, made when first needed and again when an edge has moved. */
export class Edges implements AsyncDisposable {
  readonly #watcher: NodeWatcher;
  readonly #signer: ClaimSigner;
  readonly #clients = new Map<string, { readonly url: string; readonly client: EdgeClient }>();
  readonly identity: ClientIdentity;

  constructor(watcher: NodeWatcher, identity: ClientIdentity, signer: ClaimSigner) {
    this.#watcher = watcher;
    this.#signer = signer;
    this.identity = identity;
  }

  /** The client of a node, or undefined when no such node has joined. */
  find(nodeId: string): EdgeClient | undefined {
    const url = this.#watcher.urlOf(nodeId);
    if (url === undefined) return undefined;
    const known = this.#clients.get(nodeId);
    if (known?.url === url) return known.client;
    if (known !== undefined) void known.client[Symbol.asyncDispose]();
    const client = new EdgeClient(nodeId, url, this.identity, this.#signer);
    this.#clients.set(nodeId, { url, client });
    return client;
  }

  /** What a call says when the node did not answer: lost for good as far as anybody can tell, or for now. */
  unreachable(nodeId: string, cause: unknown): PlatformError {
    return this.#watcher.healthOf(nodeId) === "lost"
      ? new PlatformError("node_lost", `Cannot reach node "${nodeId}": it has been silent for too long`, {
          cause,
        })
      : new PlatformError("unavailable", `Cannot reach node "${nodeId}" right now`, { cause, retryAfterMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [...this.#clients.values()].map(async ({ client }) => await client[Symbol.asyncDispose]()),
    );
  }
}
