import { setTimeout as delay } from "node:timers/promises";
import {
  type Backend,
  type CreateSandbox,
  headers,
  IdempotencyRecord,
  PlatformError,
  Sandbox,
} from "@dsec/contracts";
import { digestOf, parse } from "@dsec/kit";
import type { Principal } from "../iam/decide.ts";
import { EdgeUnreachable } from "../nodes/edge-client.ts";
import type { Edges } from "../nodes/edges.ts";
import { canTake, orderOf, rank } from "../placement/place.ts";
import type { NodeWatcher } from "../watcher/nodes.ts";

export interface CreateCall {
  readonly principal: Principal;
  /** Validated, with defaults. */
  readonly request: CreateSandbox;
  /** `fresh`: nobody has sent this key before, so that there is nothing to look up. */
  readonly key: { readonly text: string; readonly fresh: boolean };
  readonly requestId: string;
  readonly signal: AbortSignal;
}

export interface CreateOptions {
  readonly candidates: number;
  readonly roundsMax: number;
}

const retryAfterMs = 1_000;
const sameEdgeAttemptsMax = 5;
const sameEdgePauseMs = 200;

/**
 * Creation without shared state. The candidates are all nodes in the order of their hash with the key, k at a time; filters and load choose within the k. A
 * key that may have been seen before is first looked up on the nodes that its creation can have reached.
 */
export class Creator {
  readonly #watcher: NodeWatcher;
  readonly #edges: Edges;
  readonly #options: CreateOptions;
  /** Creations under way by project and key: of several at once with one key, one creates and the others wait. */
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(watcher: NodeWatcher, edges: Edges, options: CreateOptions) {
    this.#watcher = watcher;
    this.#edges = edges;
    this.#options = options;
  }

  async create(call: CreateCall): Promise<Sandbox> {
    this.#requireBackend(call.request.backend ?? "container");
    if (call.key.fresh) return await this.#place(call);
    const name = `${call.principal.project} ${call.key.text}`;
    for (let other = this.#underWay.get(name); other !== undefined; other = this.#underWay.get(name)) {
      await other.catch(() => undefined);
    }
    const creation = this.#lookUpOrPlace(call);
    this.#underWay.set(name, creation);
    try {
      return await creation;
    } finally {
      this.#underWay.delete(name);
    }
  }

  async #lookUpOrPlace(call: CreateCall): Promise<Sandbox> {
    const reach = this.#options.candidates * this.#options.roundsMax;
    const reached = orderOf(this.#watcher.forPlacement(), call.key.text).slice(0, reach);
    // A single node recognises the key by itself.
    const found =
      reached.length > 1
        ? await this.#lookUp(
            call,
            reached.map((node) => node.id),
          )
        : undefined;
    return found ?? (await this.#place(call));
  }

  /** The sandbox made under this key before. A node that cannot be asked leaves the question open. */
  async #lookUp(call: CreateCall, nodeIds: readonly string[]): Promise<Sandbox | undefined> {
    const answers = await Promise.all(nodeIds.map(async (id) => await this.#lookUpAt(call, id)));
    return answers.find((sandbox) => sandbox !== undefined);
  }

  async #lookUpAt(call: CreateCall, nodeId: string): Promise<Sandbox | undefined> {
    try {
      const answer = await this.#edges.find(nodeId)?.json({
        method: "GET",
        path: `/v1/idempotency/${encodeURIComponent(call.key.text)}`,
        principal: call.principal,
        requestId: call.requestId,
        signal: call.signal,
      });
      const record = parse(IdempotencyRecord, answer, "idempotency record");
      if (record.requestDigest !== digestOf(call.request)) {
        throw new PlatformError(
          "conflict",
          "Cannot create: the idempotency key was used with another request",
        );
      }
      return record.sandbox;
    } catch (cause) {
      if (cause instanceof PlatformError && cause.code === "not_found") return undefined;
      if (cause instanceof PlatformError && cause.code === "conflict") throw cause;
      call.signal.throwIfAborted();
      throw outcomeUnknown(nodeId, cause);
    }
  }

  async #place(call: CreateCall): Promise<Sandbox> {
    const backend = call.request.backend ?? "container";
    const ordered = orderOf(this.#watcher.forPlacement(), call.key.text);
    const k = this.#options.candidates;
    let rejection: PlatformError | undefined;
    for (let round = 0; round < this.#options.roundsMax && round * k < ordered.length; round += 1) {
      const candidates = ordered.slice(round * k, (round + 1) * k);
      // A key of the caller's goes to the first that can: instances that race then meet at one node.
      const ranked = call.key.fresh
        ? rank(candidates, backend)
        : candidates.filter((node) => canTake(node, backend));
      for (const node of ranked) {
        const result = await this.#createAt(call, node.id);
        if (!(result instanceof PlatformError)) return result;
        rejection = result;
      }
    }
    throw (
      rejection ??
      new PlatformError("no_capacity", "Cannot create a sandbox: no node has room for it", { retryAfterMs })
    );
  }

  /** The sandbox, or the rejection after which another node may be tried. Other failures are thrown. */
  async #createAt(call: CreateCall, nodeId: string): Promise<Sandbox | PlatformError> {
    this.#watcher.placed(nodeId);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await this.#edges.find(nodeId)?.json({
          method: "POST",
          path: "/v1/sandboxes",
          principal: call.principal,
          requestId: call.requestId,
          json: call.request,
          headers: { [headers.idempotencyKey]: call.key.text },
          signal: call.signal,
        });
        return parse(Sandbox, answer, "sandbox");
      } catch (cause) {
        call.signal.throwIfAborted();
        if (cause instanceof PlatformError) {
          if (cause.code === "no_capacity" || cause.code === "unavailable") return cause;
          throw cause;
        }
        if (cause instanceof EdgeUnreachable && attempt === 1) return this.#edges.unreachable(nodeId, cause);
        // The edge may have created it: only the same node can tell, by the key.
        if (attempt >= sameEdgeAttemptsMax) throw outcomeUnknown(nodeId, cause);
      }
      await delay(sameEdgePauseMs, undefined, { signal: call.signal });
    }
  }

  #requireBackend(backend: Backend): void {
    const nodes = this.#watcher.forPlacement();
    if (nodes.some((node) => node.backends.includes(backend))) return;
    if (nodes.every((node) => node.backends.length === 0)) {
      throw new PlatformError("no_capacity", "Cannot create a sandbox: no node has reported yet", {
        retryAfterMs,
      });
    }
    throw new PlatformError(
      "unsupported_capability",
      `Cannot create a sandbox: no node has the backend "${backend}"`,
      {
        details: { capability: `backend.${backend}` },
      },
    );
  }
}

function outcomeUnknown(nodeId: string, cause: unknown): PlatformError {
  return new PlatformError(
    "outcome_unknown",
    `Cannot tell whether the sandbox exists: node "${nodeId}" does not answer; send the same key again`,
    { cause, retryAfterMs },
  );
}
