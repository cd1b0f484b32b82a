import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import {
  claimHeader,
  decodeOutputChunk,
  headers,
  httpStatusOf,
  isSandboxId,
  nodeOf,
  PlatformError,
  routes,
  StreamEvent,
  StreamRequest,
  sandboxNotFound,
} from "@dsec/contracts";
import { asPlatformError, parseJson } from "@dsec/kit";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import { claimOf, type Principal } from "../iam/decide.ts";
import { tlsOptions } from "../nodes/edge-client.ts";
import type { ControlContext } from "./context.ts";

const messageBytesMax = 128 * 1024;
const keepAliveMs = 20_000;
/** A client that is this far behind stops its edges until it has caught up. */
const backlogBytesMax = 8 * 1024 * 1024;
const backlogCheckMs = 50;
const subprotocol = "dsec.v1";
const keySubprotocol = /^dsec\.key\.(.+)$/;

/** Serves `GET /v1/events/stream` on the HTTP server of the API: one client's subscriptions, spread over the edges that own their sandboxes. */
export function serveEventStreams(server: Server, context: ControlContext): WebSocketServer {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: messageBytesMax,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    void accept(request, context).then(
      (principal) => {
        sockets.handleUpgrade(request, socket, head, (client) => {
          new ClientStream(client, principal, context);
        });
      },
      (error: unknown) => refuse(socket, asPlatformError(error)),
    );
  });
  return sockets;
}

async function accept(request: IncomingMessage, context: ControlContext): Promise<Principal> {
  const path = request.url?.split("?")[0];
  if (path !== routes.eventStream.path) throw new PlatformError("not_found", "Cannot find this route");
  const offered = request.headers["sec-websocket-protocol"]?.split(",").map((name) => name.trim()) ?? [];
  const key = offered.map((name) => keySubprotocol.exec(name)?.[1]).find((text) => text !== undefined);
  const authorization = request.headers.authorization ?? (key === undefined ? undefined : `Bearer ${key}`);
  return await context.authenticator.principal(authorization, routes.eventStream.auth);
}

function refuse(socket: Duplex, error: PlatformError): void {
  const body = JSON.stringify({ code: error.code, message: error.message, requestId: "" });
  socket.end(
    `HTTP/1.1 ${httpStatusOf(error.code)} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

interface Upstream {
  readonly socket: WebSocket;
  readonly subscriptions: Set<number>;
  /** Messages that wait for the connection. */
  readonly waiting: string[];
}

/** One client's connection and its upstream connections, one per edge, all with the client's own subscription numbers. */
class ClientStream {
  readonly #client: WebSocket;
  readonly #principal: Principal;
  readonly #context: ControlContext;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #nodeOfSubscription = new Map<number, string>();
  readonly #keepAlive: NodeJS.Timeout;
  #draining: NodeJS.Timeout | undefined;

  constructor(client: WebSocket, principal: Principal, context: ControlContext) {
    this.#client = client;
    this.#principal = principal;
    this.#context = context;
    this.#keepAlive = setInterval(() => this.#send({ type: "keepalive" }), keepAliveMs);
    client.on("message", (data, isBinary) => this.#onRequest(data, isBinary));
    client.on("close", () => this.#end());
    client.on("error", () => client.terminate());
  }

  #onRequest(data: RawData, isBinary: boolean): void {
    const text = (data as Buffer).toString("utf8");
    let request: StreamRequest;
    try {
      if (isBinary) throw new PlatformError("invalid_request", "Wrong message: clients send text");
      request = parseJson(StreamRequest, text, "message");
    } catch (error) {
      this.#client.close(1008, asPlatformError(error).message.slice(0, 120));
      return;
    }
    switch (request.type) {
      case "subscribe":
        this.#subscribe(request.subscription, request.sandboxId, text);
        return;
      case "credit":
      case "unsubscribe":
        this.#pass(request.subscription, text, request.type === "unsubscribe");
        return;
    }
  }

  #subscribe(subscription: number, sandboxId: string, text: string): void {
    if (this.#nodeOfSubscription.has(subscription)) {
      this.#client.close(1008, "a subscription number is used twice");
      return;
    }
    const nodeId = isSandboxId(sandboxId) ? nodeOf(sandboxId) : undefined;
    const url = nodeId === undefined ? undefined : this.#context.watcher.urlOf(nodeId);
    if (nodeId === undefined || url === undefined) {
      this.#fail(subscription, sandboxNotFound(sandboxId));
      return;
    }
    this.#nodeOfSubscription.set(subscription, nodeId);
    const upstream = this.#upstreams.get(nodeId) ?? this.#connect(nodeId, url);
    upstream.subscriptions.add(subscription);
    deliver(upstream, text);
  }

  #pass(subscription: number, text: string, ends: boolean): void {
    const nodeId = this.#nodeOfSubscription.get(subscription);
    const upstream = nodeId === undefined ? undefined : this.#upstreams.get(nodeId);
    if (upstream === undefined) return;
    deliver(upstream, text);
    if (ends) this.#forget(subscription);
  }

  #connect(nodeId: string, url: string): Upstream {
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}${routes.eventStream.path}`, {
      ...tlsOptions(nodeId, this.#context.edges.identity),
      headers: {
        [claimHeader]: this.#context.signer.header(claimOf(this.#principal)),
        [headers.requestId]: `stream-${this.#principal.keyId}`,
      },
      maxPayload: messageBytesMax,
    });
    const upstream: Upstream = { socket, subscriptions: new Set(), waiting: [] };
    this.#upstreams.set(nodeId, upstream);
    socket.on("open", () => {
      for (const text of upstream.waiting.splice(0)) socket.send(text);
    });
    socket.on("message", (data, isBinary) => this.#onEvent(data, isBinary));
    socket.on("error", (error) =>
      this.#context.log.debug({ err: error, nodeId }, "event stream of an edge failed"),
    );
    socket.on("close", () => this.#lose(nodeId, upstream));
    return upstream;
  }

  #onEvent(data: RawData, isBinary: boolean): void {
    const bytes = data as Buffer;
    if (isBinary) {
      const chunk = decodeOutputChunk(bytes);
      if (chunk === undefined || !this.#nodeOfSubscription.has(chunk.subscription)) return;
      this.#client.send(bytes, { binary: true });
      this.#holdBack();
      return;
    }
    const event = parseJson(StreamEvent, bytes.toString("utf8"), "event of an edge");
    if (event.type === "keepalive" || !this.#nodeOfSubscription.has(event.subscription)) return;
    this.#forget(event.subscription);
    this.#client.send(bytes.toString("utf8"));
  }

  /** Stops reading from the edges while the client is far behind: credit alone bounds one subscription, not all together. */
  #holdBack(): void {
    if (this.#client.bufferedAmount < backlogBytesMax || this.#draining !== undefined) return;
    for (const { socket } of this.#upstreams.values()) socket.pause();
    this.#draining = setInterval(() => {
      if (this.#client.bufferedAmount >= backlogBytesMax / 2) return;
      clearInterval(this.#draining);
      this.#draining = undefined;
      for (const { socket } of this.#upstreams.values()) socket.resume();
    }, backlogCheckMs);
  }

  #lose(nodeId: string, upstream: Upstream): void {
    if (this.#upstreams.get(nodeId) === upstream) this.#upstreams.delete(nodeId);
    for (const subscription of upstream.subscriptions) {
      this.#nodeOfSubscription.delete(subscription);
      this.#fail(subscription, this.#context.edges.unreachable(nodeId, undefined));
    }
  }

  #fail(subscription: number, error: PlatformError): void {
    this.#send({ type: "failed", subscription, code: error.code, message: error.message });
  }

  #forget(subscription: number): void {
    const nodeId = this.#nodeOfSubscription.get(subscription);
    this.#nodeOfSubscription.delete(subscription);
    if (nodeId !== undefined) this.#upstreams.get(nodeId)?.subscriptions.delete(subscription);
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
  }
}

function deliver(upstream: Upstream, text: string): void {
  if (upstream.socket.readyState === WebSocket.OPEN) upstream.socket.send(text);
  else upstream.waiting.push(text);
}
