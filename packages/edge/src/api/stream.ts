import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import {
  type Claim,
  httpStatusOf,
  limits,
  PlatformError,
  routes,
  type StreamEvent,
  StreamRequest,
} from "@dsec/contracts";
import { asPlatformError, parseJsonWithDefaults } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { type RawData, WebSocket, WebSocketServer } from "ws";
import { claimOf } from "./claimed-route.ts";
import type { EdgeContext } from "./context.ts";
import { Subscription, type SubscriptionSource } from "./subscription.ts";

const messageBytesMax = 16 * 1024;
const keepAliveMs = 20_000;

/** Serves the event stream (contracts/stream.ts) beside the routes of `app`; connections end with it. */
export function serveEventStreams(app: FastifyInstance, context: EdgeContext): void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: messageBytesMax });
  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    try {
      if (request.url?.split("?")[0] !== routes.eventStream.path)
        throw new PlatformError("not_found", "Cannot find this route");
      const claim = claimOf(context, request, routes.eventStream);
      sockets.handleUpgrade(request, socket, head, (client) => serveClient(client, claim, context));
    } catch (error) {
      const known = asPlatformError(error);
      const body = JSON.stringify({ code: known.code, message: known.message, requestId: "" });
      socket.end(
        `HTTP/1.1 ${httpStatusOf(known.code)} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
    }
  });
  app.addHook("onClose", async () => {
    for (const client of sockets.clients) client.terminate();
    sockets.close();
  });
}

function serveClient(client: WebSocket, claim: Claim, context: EdgeContext): void {
  const subscriptions = new Map<number, Subscription>();
  const send = (message: Uint8Array | StreamEvent): void => {
    if (client.readyState !== WebSocket.OPEN) return;
    client.send(message instanceof Uint8Array ? message : JSON.stringify(message));
  };
  const keepAlive = setInterval(() => send({ type: "keepalive" }), keepAliveMs);
  client.on("error", () => client.terminate());
  client.on("close", () => {
    clearInterval(keepAlive);
    for (const subscription of subscriptions.values()) subscription.close();
    subscriptions.clear();
  });
  client.on("message", (data, isBinary) => {
    try {
      if (isBinary) throw new PlatformError("invalid_request", "Wrong message: clients send text");
      onRequest(parseRequest(data));
    } catch (error) {
      client.close(1008, asPlatformError(error).message.slice(0, 120));
    }
  });

  function onRequest(request: StreamRequest): void {
    const known = subscriptions.get(request.subscription);
    switch (request.type) {
      case "credit":
        known?.credit(request.bytes);
        return;
      case "unsubscribe":
        subscriptions.delete(request.subscription);
        known?.close();
        return;
      case "subscribe":
        if (known !== undefined)
          throw new PlatformError("invalid_request", "Wrong message: a subscription number is used twice");
        if (subscriptions.size >= limits.subscriptionsMax)
          throw new PlatformError("too_many", "Too many subscriptions");
        subscriptions.set(request.subscription, open(request));
    }
  }

  function open(request: Extract<StreamRequest, { type: "subscribe" }>): Subscription {
    const { sandboxes } = context;
    const source: SubscriptionSource = {
      recorded: (commandId) => sandboxes.recordedOutcome(claim, request.sandboxId, commandId),
      live: () => sandboxes.live(claim, request.sandboxId),
    };
    return new Subscription(request, source, {
      send,
      over: () => subscriptions.delete(request.subscription),
    });
  }
}

function parseRequest(data: RawData): StreamRequest {
  return parseJsonWithDefaults(StreamRequest, (data as Buffer).toString("utf8"), "message");
}
