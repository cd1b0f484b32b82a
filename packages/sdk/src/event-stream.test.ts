import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeOutputChunk, type StreamRequest, type Subscribe } from "@dsec/contracts";
import type { WebSocket } from "ws";
import { DsecClient } from "./client.ts";
import type { Command } from "./command.ts";
import {
  answerJson,
  type PlatformServer,
  sandboxInfo,
  startPlatformServer,
} from "./testing/platform-server.ts";

const outcome = { exitCode: 0, cause: "exit" };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function startServer(
  onMessage: (socket: WebSocket, message: StreamRequest) => void,
): Promise<PlatformServer> {
  return await startPlatformServer({
    onMessage,
    answer: (request, response, number) =>
      request.method === "GET"
        ? answerJson(response, 200, sandboxInfo())
        : answerJson(response, 200, { commandId: `c${String(number).padStart(12, "0")}`, outcome: null }),
  });
}

async function startCommand(client: DsecClient): Promise<Command> {
  return await (await client.sandboxes.get("sbx")).start("true");
}

function send(
  socket: WebSocket,
  request: Subscribe,
  text: string,
  at: { stream?: 1 | 2; offset: number; last?: boolean },
): void {
  const { stream = 1, offset, last = false } = at;
  socket.send(
    encodeOutputChunk({ subscription: request.subscription, stream, last, offset, bytes: bytes(text) }),
  );
}

const end = (socket: WebSocket, request: Subscribe): void =>
  socket.send(JSON.stringify({ type: "ended", subscription: request.subscription, outcome }));

test("ends and output of many commands come over one connection", async () => {
  await using server = await startServer((socket, request) => {
    if (request.type !== "subscribe") return;
    if (request.output) {
      send(socket, request, "out", { offset: 0, last: true });
      send(socket, request, "err", { stream: 2, offset: 0, last: true });
    }
    end(socket, request);
  });
  await using client = new DsecClient({ url: server.url, key: "k" });
  const commands = await Promise.all(Array.from({ length: 40 }, () => startCommand(client)));
  for (const command of commands) {
    const [end, out, err] = await Promise.all([
      command.outcome(),
      command.stdout.text(),
      command.stderr.text(),
    ]);
    assert.deepEqual([end.exitCode, out, err], [0, "out", "err"]);
  }
  assert.equal(server.sockets.length, 1);
});

test("a lost connection is made again and output goes on at its offset", async () => {
  await using server = await startServer((socket, request) => {
    if (request.type !== "subscribe") return;
    if (request.stdoutOffset === 0) {
      send(socket, request, "hello ", { offset: 0 });
      setTimeout(() => socket.terminate(), 20);
    } else {
      send(socket, request, "lo world", { offset: 3 });
      send(socket, request, "!", { offset: 13, last: true });
      end(socket, request);
    }
  });
  await using client = new DsecClient({ url: server.url, key: "k" });
  const command = await startCommand(client);
  assert.equal(await command.stdout.text(), "hello world!");
  assert.equal(command.stdout.droppedBytes, 2);
  assert.equal(server.sockets.length, 2);
  const second = server.messages.find((message) => message.type === "subscribe" && message.stdoutOffset > 0);
  assert.ok(second?.type === "subscribe");
  assert.equal(second.stdoutOffset, 6);
});

test("credit is granted as the reader takes bytes, and a stream that nobody reads does not stop the other", async () => {
  const piece = "x".repeat(65_536);
  let granted = 0;
  let sent = 0;
  const total = 64;
  await using server = await startServer((socket, request) => {
    if (request.type === "unsubscribe") return;
    if (request.type === "subscribe") {
      granted = request.credit;
      sent = 0;
    } else granted += request.bytes;
    const subscribe = server.messages.find((message) => message.type === "subscribe");
    assert.ok(subscribe?.type === "subscribe");
    while (sent < total * 2 && (sent + 1) * piece.length <= granted) {
      const stream = sent % 2 === 0 ? 1 : 2;
      send(socket, subscribe, piece, { stream, offset: Math.floor(sent / 2) * piece.length });
      sent += 1;
    }
    if (sent === total * 2) end(socket, subscribe);
  });
  await using client = new DsecClient({ url: server.url, key: "k" });
  const command = await startCommand(client);
  assert.equal((await command.stdout.text()).length, total * piece.length);
  assert.equal((await command.stderr.text()).length, total * piece.length);
});

test("a subscription that the platform refuses is an error with its code", async () => {
  await using server = await startServer((socket, request) => {
    if (request.type !== "subscribe") return;
    socket.send(
      JSON.stringify({ type: "failed", subscription: request.subscription, code: "gone", message: "m" }),
    );
  });
  await using client = new DsecClient({ url: server.url, key: "k" });
  const command = await startCommand(client);
  await assert.rejects(command.outcome(), { code: "gone", message: "m" });
  await assert.rejects(command.stdout.text(), { code: "gone" });
});

test("a node that is away for a moment is asked again", async () => {
  let asked = 0;
  await using server = await startServer((socket, request) => {
    if (request.type !== "subscribe") return;
    asked += 1;
    if (asked > 2) end(socket, request);
    else {
      const event = { type: "failed", subscription: request.subscription, code: "unavailable", message: "m" };
      socket.send(JSON.stringify(event));
    }
  });
  await using client = new DsecClient({ url: server.url, key: "k" });
  assert.equal((await (await startCommand(client)).outcome()).exitCode, 0);
});

test("outcome() ends its waiting when its signal aborts", async () => {
  await using server = await startServer(() => {});
  await using client = new DsecClient({ url: server.url, key: "k" });
  const command = await startCommand(client);
  await assert.rejects(command.outcome({ signal: AbortSignal.timeout(20) }), { code: "cancelled" });
  client.close();
  await assert.rejects(command.outcome(), { code: "cancelled" });
});
