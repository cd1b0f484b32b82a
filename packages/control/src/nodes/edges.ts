import { accessSync, constants, statSync } from "node:fs";
import { basename } from "node:path";
import { localSocketName, PlatformError } from "@dsec/contracts";
import type { ClaimSigner } from "@dsec/kit";
import type { NodeWatcher } from "../watcher/nodes.ts";
import { type ClientIdentity, EdgeClient } from "./edge-client.ts";

const retryAfterMs = 1_000;

interface KnownEdge {
  readonly url: string;
  /** The local socket that the edge named, whether it can be used here or not. */
  readonly named: string | undefined;
  readonly client: EdgeClient;
}

/** The edges of the fleet, one client each, made when first needed and again when an edge has moved. */
export class Edges implements AsyncDisposable {
  readonly #watcher: NodeWatcher;
  readonly #signer: ClaimSigner;
  readonly #clients = new Map<string, KnownEdge>();
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
    const named = this.#watcher.localSocketOf(nodeId);
    const known = this.#clients.get(nodeId);
    if (known?.url === url && known.named === named) return known.client;
    if (known !== undefined) void known.client[Symbol.asyncDispose]();
    const socketPath = named === undefined ? undefined : usableSocket(named, nodeId);
    const address = { nodeId, url, ...(socketPath === undefined ? {} : { socketPath }) };
    const client = new EdgeClient(address, this.identity, this.#signer);
    this.#clients.set(nodeId, { url, named, client });
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

/**
 * The socket when it is on this machine, root's, and the named node's: an edge must not be able to point control at another program's
 * socket. Anything else is reached over TLS.
 */
function usableSocket(path: string, nodeId: string): string | undefined {
  if (basename(path) !== localSocketName(nodeId)) return undefined;
  try {
    const status = statSync(path);
    accessSync(path, constants.R_OK | constants.W_OK);
    return status.isSocket() && status.uid === 0 ? path : undefined;
  } catch {
    // Of another machine, or out of this user's reach.
    return undefined;
  }
}
