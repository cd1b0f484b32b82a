import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { httpStatusOf, PlatformError, randomBase32, routes } from "@dsec/contracts";
import { addRoute, asPlatformError, errorBody } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { WebSocketServer } from "ws";
import { EventStream } from "../app/event-stream.ts";
import type { Principal } from "../iam/decide.ts";
import type { ControlContext } from "./context.ts";

/** Requests are small; the longest is a subscription. */
const messageBytesMax = 4_096;
const subprotocol = "dsec.v1";
const keySubprotocol = /^dsec\.key\.(.+)$/;

/**
 * Serves `GET /v1/events/stream` on the HTTP server of the API. The key comes in `authorization` or, from runtimes that cannot set
 * headers, as the subprotocol `dsec.key.KEY` beside `dsec.v1`.
 */
export function addEventStreams(app: FastifyInstance, context: ControlContext): WebSocketServer {
  addRoute(app, routes.eventStream, { summary: "Ends and output of commands, as WebSocket" }, async () => {
    throw new PlatformError("invalid_request", "Wrong request: this route speaks WebSocket alone");
  });
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: messageBytesMax,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  (app.server as Server).on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const authorization = authorizationOf(request);
    const check = async (): Promise<Principal> =>
      await context.authenticator.principal(authorization, routes.eventStream.auth);
    accept(request, check).then(
      (principal) =>
        sockets.handleUpgrade(request, socket, head, (client) => {
          new EventStream(client, {
            principal,
            edges: context.edges,
            watcher: context.watcher,
            log: context.log,
            isAllowed: async () => await isAllowed(check),
            keepAliveMs: context.streamKeepAliveMs,
          });
        }),
      (error: unknown) => refuse(socket, asPlatformError(error)),
    );
  });
  return sockets;
}

async function accept(request: IncomingMessage, check: () => Promise<Principal>): Promise<Principal> {
  const path = request.url?.split("?")[0];
  if (path !== routes.eventStream.path) throw new PlatformError("not_found", "Cannot find this route");
  return await check();
}

async function isAllowed(check: () => Promise<Principal>): Promise<boolean> {
  try {
    await check();
    return true;
  } catch (error) {
    if (error instanceof PlatformError) return false;
    throw error;
  }
}

function authorizationOf(request: IncomingMessage): string | undefined {
  const offered = request.headers["sec-websocket-protocol"]?.split(",").map((name) => name.trim()) ?? [];
  const key = offered.map((name) => keySubprotocol.exec(name)?.[1]).find((text) => text !== undefined);
  return request.headers.authorization ?? (key === undefined ? undefined : `Bearer ${key}`);
}

function refuse(socket: Duplex, error: PlatformError): void {
  const body = JSON.stringify(errorBody(error, randomBase32(16)));
  socket.end(
    `HTTP/1.1 ${httpStatusOf(error.code)} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
