import {
  type JoinedNode,
  type JoinNode,
  type JoinToken,
  type NodeId,
  newNodeId,
  PlatformError,
} from "@dsec/contracts";
import { fingerprint, type KeyPair, signRequest } from "@dsec/kit";
import { hashSecret, newSecret } from "../iam/secrets.ts";
import type { Database } from "../store/database.ts";
import { insertJoinToken, insertNode, isJoinToken, listNodes, updateNode } from "../store/nodes.ts";
import type { NodeWatcher } from "../watcher/nodes.ts";
import type { Instances } from "./instances.ts";

export interface JoinOptions {
  readonly database: Database;
  readonly watcher: NodeWatcher;
  readonly authority: KeyPair;
  /** Public key of the claims, SPKI PEM. */
  readonly claimKey: string;
  readonly instances: Instances;
}

interface Admitted {
  readonly nodeId: string;
  readonly certificate: string;
}

const tokenLifetimeMs = 24 * 60 * 60 * 1000;
const idAttemptsMax = 32;
const tokenPattern = /^dj_[0-9a-f]{64}_([A-Za-z0-9_-]{43})$/;

/** Admits edges to the fleet. */
export class Joins {
  readonly #options: JoinOptions;

  constructor(options: JoinOptions) {
    this.#options = options;
  }

  /** `dj_<fingerprint of the authority>_<secret>`: good for 24 hours, for any number of edges. */
  async createToken(): Promise<JoinToken> {
    const secret = newSecret();
    const expiresAtMs = Date.now() + tokenLifetimeMs;
    await insertJoinToken(this.#options.database, hashSecret(secret), expiresAtMs);
    return { token: `dj_${fingerprint(this.#options.authority.certificate)}_${secret}`, expiresAtMs };
  }

  /** `peer` is the common name of the client certificate, when the edge showed one of our authority. */
  async join(request: JoinNode, peer: string | undefined): Promise<JoinedNode> {
    const secret = tokenPattern.exec(request.token)?.[1];
    if (
      secret === undefined ||
      !(await isJoinToken(this.#options.database, hashSecret(secret), Date.now()))
    ) {
      throw new PlatformError("unauthenticated", "Cannot join: the token is unknown or has expired");
    }
    // The certificate first: a request that cannot be signed must not leave a node behind.
    const { nodeId, certificate } =
      request.nodeId === undefined
        ? await this.#newNode(request)
        : await this.#knownNode(request, request.nodeId, peer);
    this.#options.watcher.know(await listNodes(this.#options.database));
    return {
      nodeId,
      certificate,
      authority: this.#options.authority.certificate,
      claimKey: this.#options.claimKey,
      controls: [...this.#options.instances.urls],
    };
  }

  async #newNode(request: JoinNode): Promise<Admitted> {
    for (let attempt = 0; attempt < idAttemptsMax; attempt += 1) {
      const nodeId = newNodeId();
      const certificate = await this.#certificate(request, nodeId);
      if (await this.#insert(request, nodeId)) return { nodeId, certificate };
    }
    throw new PlatformError("internal", "Cannot join: no free node id was found");
  }

  /** A node keeps its id over a new join when it proves that it is that node, or when this store has never heard of it. */
  async #knownNode(request: JoinNode, nodeId: string, peer: string | undefined): Promise<Admitted> {
    const certificate = await this.#certificate(request, nodeId);
    const isNew = await this.#insert(request, nodeId as NodeId);
    if (!isNew && peer !== `edge-${nodeId}`) {
      throw new PlatformError(
        "forbidden",
        `Cannot join as node "${nodeId}": show the certificate of that node`,
      );
    }
    await updateNode(this.#options.database, { id: nodeId, hostname: request.hostname, url: request.url });
    return { nodeId, certificate };
  }

  async #insert(request: JoinNode, id: NodeId): Promise<boolean> {
    return await insertNode(this.#options.database, {
      id,
      hostname: request.hostname,
      url: request.url,
      joinedAtMs: Date.now(),
    });
  }

  async #certificate(request: JoinNode, nodeId: string): Promise<string> {
    const hosts = [...new Set([new URL(request.url).hostname, "127.0.0.1", "localhost"])];
    try {
      return await signRequest(this.#options.authority, request.csr, { commonName: `edge-${nodeId}`, hosts });
    } catch (cause) {
      throw new PlatformError("invalid_request", "Cannot join: the certificate request is not valid", {
        cause,
      });
    }
  }
}
