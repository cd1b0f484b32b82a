import {
  decodeOutputChunk,
  isSandboxId,
  limits,
  nodeOf,
  PlatformError,
  StreamEvent,
  StreamRequest,
  type Subscribe,
  sandboxNotFound,
} from "@dsec/contracts";
import { asPlatformError, type Log, parseJson, parseJsonWithDefaults } from "@dsec/kit";
import { type RawData, WebSocket } from "ws";
import type { Principal } from "../iam/decide.ts";
import type { Edges } from "../nodes/edges.ts";
import type { NodeWatcher } from "../watcher/nodes.ts";

export interface EventStreamOptions {
  readonly principal: Principal;
  readonly edges: Edges;
  readonly watcher: NodeWatcher;
  readonly log: Log;
  /** Whether the caller's key still holds; asked again at every keep-alive. */
  readonly isAllowed: () => Promise<boolean>;
  readonly keepAliveMs: number;
}

interface Upstream {
  readonly nodeId: string;
  readonly socket: WebSocket;
  readonly subscriptions: Set<number>;
  /** Messages that wait for the connection. */
  readonly waiting: string[];
  heardAtMs: number;
}

/** A client that is this far behind stops its edges until it has caught up. */
const backlogBytesMax = 8 * 1024 * 1024;
const backlogCheckMs = 20;
/** An edge that takes nothing for so long that this much waits for it is given up. */
const upstreamBacklogBytesMax = 8 * 1024 * 1024;
const upstreamWaitingMax = 2 * limits.subscriptionsMax;
/** Edges send a keep-alive in each period: one that misses this many is given up. */
const silentPeriodsMax = 3;
const policyViolation = 1008;

/**
 * One client's event stream: subscriptions spread over the edges that own their sandboxes, one upstream connection an edge, all with the
 * client's own subscription numbers, so that output passes unchanged. Credit runs from client to edge; what is lost with an edge
 * ends as `failed`, and the client subscribes again from its offsets.
 */
export class EventStream {
  readonly #client: WebSocket;
  readonly #options: EventStreamOptions;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #upstreamOf = new Map<number, Upstream>();
  readonly #keepAlive: NodeJS.Timeout;
  #draining: NodeJS.Timeout | undefined;

  constructor(client: WebSocket, options: EventStreamOptions) {
    this.#client = client;
    this.#options = options;
    this.#keepAlive = setInterval(() => this.#check(), options.keepAliveMs);
    client.on("message", (data, isBinary) => this.#onRequest(data, isBinary));
    client.on("close", () => this.#end());
    client.on("error", () => client.terminate());
  }

  #onRequest(data: RawData, isBinary: boolean): void {
    let request: StreamRequest;
    try {
      if (isBinary) throw new PlatformError("invalid_request", "Wrong message: clients send text");
      request = parseJsonWithDefaults(StreamRequest, (data as Buffer).toString("utf8"), "message");
    } catch (error) {
      this.#client.close(policyViolation, asPlatformError(error).message.slice(0, 120));
      return;
    }
    switch (request.type) {
      case "subscribe":
        this.#subscribe(request);
        return;
      case "credit":
        this.#pass(request);
        return;
      case "unsubscribe":
        this.#pass(request);
        this.#forget(request.subscription);
        return;
    }
  }

  #subscribe(request: Subscribe): void {
    const { subscription, sandboxId } = request;
    if (this.#upstreamOf.has(subscription)) {
      this.#client.close(policyViolation, "a subscription number is used twice");
      return;
    }
    try {
      if (this.#upstreamOf.size >= limits.subscriptionsMax) {
        throw new PlatformError(
          "too_many",
          `Cannot subscribe: ${limits.subscriptionsMax} subscriptions are open`,
        );
      }
      const upstream = this.#upstreamFor(sandboxId);
      this.#upstreamOf.set(subscription, upstream);
      upstream.subscriptions.add(subscription);
      this.#deliver(upstream, request);
    } catch (error) {
      this.#fail(subscription, asPlatformError(error));
    }
  }

  #upstreamFor(sandboxId: string): Upstream {
    if (!isSandboxId(sandboxId)) throw sandboxNotFound(sandboxId);
    const nodeId = nodeOf(sandboxId);
    const known = this.#upstreams.get(nodeId);
    if (known !== undefined) return known;
    const edge = this.#options.edges.find(nodeId);
    if (edge === undefined) throw sandboxNotFound(sandboxId);
    if (this.#options.watcher.healthOf(nodeId) === "lost")
      throw this.#options.edges.unreachable(nodeId, undefined);
    return this.#attach(nodeId, edge.openEventStream(this.#options.principal));
  }

  #attach(nodeId: string, socket: WebSocket): Upstream {
    const upstream: Upstream = {
      nodeId,
      socket,
      subscriptions: new Set(),
      waiting: [],
      heardAtMs: performance.now(),
    };
    this.#upstreams.set(nodeId, upstream);
    socket.on("open", () => {
      for (const text of upstream.waiting.splice(0)) socket.send(text);
    });
    socket.on("message", (data, isBinary) => {
      upstream.heardAtMs = performance.now();
      try {
        this.#onEvent(upstream, data as Buffer, isBinary);
      } catch (error) {
        this.#options.log.warn({ err: error, nodeId }, "an edge sent a wrong event");
        socket.terminate();
      }
    });
    socket.on("pong", () => {
      upstream.heardAtMs = performance.now();
    });
    socket.on("error", (error) =>
      this.#options.log.debug({ err: error, nodeId }, "event stream of an edge failed"),
    );
    socket.on("close", () => this.#lose(upstream));
    return upstream;
  }

  #onEvent(upstream: Upstream, data: Buffer, isBinary: boolean): void {
    if (isBinary) {
      const chunk = decodeOutputChunk(data);
      if (chunk === undefined) throw new PlatformError("invalid_request", "Wrong output of an edge");
      if (this.#upstreamOf.get(chunk.subscription) !== upstream) return;
      this.#client.send(data, { binary: true });
      this.#holdBack();
      return;
    }
    const text = data.toString("utf8");
    const event = parseJson(StreamEvent, text, "event of an edge");
    if (event.type === "keepalive" || this.#upstreamOf.get(event.subscription) !== upstream) return;
    this.#forget(event.subscription);
    this.#client.send(text);
  }

  /** Stops reading from the edges while the client is far behind: credit bounds one subscription, not all together. */
  #holdBack(): void {
    if (this.#client.bufferedAmount < backlogBytesMax || this.#draining !== undefined) return;
    for (const { socket } of this.#upstreams.values()) socket.pause();
    this.#draining = setInterval(() => {
      if (this.#client.bufferedAmount >= backlogBytesMax / 2) return;
      clearInterval(this.#draining);
      this.#draining = undefined;
      for (const upstream of this.#upstreams.values()) {
        upstream.heardAtMs = performance.now();
        upstream.socket.resume();
      }
    }, backlogCheckMs);
  }

  /** Every period: tells the client that all is well, and looks whether it is. */
  #check(): void {
    this.#send({ type: "keepalive" });
    const silentSinceMs = performance.now() - silentPeriodsMax * this.#options.keepAliveMs;
    for (const upstream of this.#upstreams.values()) {
      const isSilent = this.#draining === undefined && upstream.heardAtMs < silentSinceMs;
      if (isSilent || this.#options.watcher.healthOf(upstream.nodeId) === "lost") this.#drop(upstream);
      else if (upstream.socket.readyState === WebSocket.OPEN) upstream.socket.ping();
    }
    this.#options.isAllowed().then(
      (isAllowed) => {
        if (!isAllowed) this.#client.close(policyViolation, "the API key has been revoked");
      },
      (error: unknown) => this.#options.log.warn({ err: error }, "a key could not be checked again"),
    );
  }

  #pass(request: Exclude<StreamRequest, Subscribe>): void {
    const upstream = this.#upstreamOf.get(request.subscription);
    // What ended a moment ago is no error: the messages have crossed.
    if (upstream !== undefined) this.#deliver(upstream, request);
  }

  #deliver(upstream: Upstream, request: StreamRequest): void {
    const text = JSON.stringify(request);
    if (upstream.socket.readyState === WebSocket.OPEN) upstream.socket.send(text);
    else upstream.waiting.push(text);
    if (
      upstream.waiting.length > upstreamWaitingMax ||
      upstream.socket.bufferedAmount > upstreamBacklogBytesMax
    ) {
      this.#drop(upstream);
    }
  }

  #drop(upstream: Upstream): void {
    this.#lose(upstream);
    upstream.socket.terminate();
  }

  #lose(upstream: Upstream): void {
    if (this.#upstreams.get(upstream.nodeId) === upstream) this.#upstreams.delete(upstream.nodeId);
    for (const subscription of upstream.subscriptions) {
      this.#upstreamOf.delete(subscription);
      this.#fail(subscription, this.#options.edges.unreachable(upstream.nodeId, undefined));
    }
    upstream.subscriptions.clear();
  }

  #forget(subscription: number): void {
    this.#upstreamOf.get(subscription)?.subscriptions.delete(subscription);
    this.#upstreamOf.delete(subscription);
  }

  #fail(subscription: number, error: PlatformError): void {
    this.#send({ type: "failed", subscription, code: error.code, message: error.message });
  }

  #send(event: StreamEvent): void {
    if (this.#client.readyState === WebSocket.OPEN) this.#client.send(JSON.stringify(event));
  }

  #end(): void {
    clearInterval(this.#keepAlive);
    clearInterval(this.#draining);
    for (const { socket, subscriptions } of this.#upstreams.values()) {
      subscriptions.clear();
      socket.terminate();
    }
    this.#upstreams.clear();
    this.#upstreamOf.clear();
  }
}
