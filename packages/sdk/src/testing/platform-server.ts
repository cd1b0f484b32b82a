import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { StreamRequest } from "@dsec/contracts";
import { type WebSocket, WebSocketServer } from "ws";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export type Answerer = (request: SeenRequest, response: ServerResponse, number: number) => void;

/** A real HTTP and WebSocket server on a free port whose answers a test writes. Disposing ends all connections. */
export interface PlatformServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  readonly sockets: readonly WebSocket[];
  readonly messages: readonly StreamRequest[];
}

export async function startPlatformServer(options: {
  readonly answer?: Answerer;
  readonly onMessage?: (socket: WebSocket, message: StreamRequest) => void;
}): Promise<PlatformServer> {
  const requests: SeenRequest[] = [];
  const messages: StreamRequest[] = [];
  const sockets: WebSocket[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const seen = { method, path: url, headers, body };
      requests.push(seen);
      options.answer?.(seen, response, requests.length);
    });
  });
  const webSockets = new WebSocketServer({ server });
  webSockets.on("connection", (socket) => {
    sockets.push(socket);
    socket.on("message", (data: Buffer) => {
      const message = JSON.parse(data.toString()) as StreamRequest;
      messages.push(message);
      options.onMessage?.(socket, message);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    messages,
    sockets,
    async [Symbol.asyncDispose]() {
      if (!server.listening) return;
      for (const socket of sockets) socket.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

/** A sandbox as the platform describes it. */
export function sandboxInfo(id = "sbabcdefghijklmnopqrstuvwx"): Record<string, unknown> {
  return { id, project: "p", node: "abcd", state: "running" };
}
