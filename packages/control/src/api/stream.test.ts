// The event stream: one client, many edges, credit, loss and revocation.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import {
  type CreatedKey,
  decodeOutputChunk,
  encodeOutputChunk,
  type Sandbox,
  type StreamEvent,
  type StreamRequest,
  type Subscribe,
} from "@dsec/contracts";
import { WebSocket } from "ws";
import type { FakeEdge } from "../testing/fake-edge.ts";
import { TestFleet } from "../testing/fleet.ts";

const outcome = {
  exitCode: 0,
  signal: null,
  cause: "exit",
  failure: { fault: "none", cause: "exit", maskable: false, agentCouldCause: true },
  message: null,
  startedAtMs: 1,
  endedAtMs: 2,
  cpuMs: 1,
  stdout: { bytes: 3, dropped: 0 },
  stderr: { bytes: 0, dropped: 0 },
  leftRunning: false,
} as const;

/** Everything that came, in order: text as events, output as `subscription:text`. */
class Client implements Disposable {
  readonly socket: WebSocket;
  readonly came: (StreamEvent | string)[] = [];
  #wake: () => void = () => undefined;

  constructor(fleet: TestFleet, key: string = fleet.adminKey) {
    this.socket = new WebSocket(`${fleet.control.url.replace("http", "ws")}/v1/events/stream`, {
      headers: { authorization: `Bearer ${key}` },
    });
    this.socket.on("message", (data: Buffer, isBinary) => {
      const chunk = isBinary ? decodeOutputChunk(data) : undefined;
      this.came.push(
        chunk === undefined
          ? (JSON.parse(data.toString("utf8")) as StreamEvent)
          : `${chunk.subscription}:${Buffer.from(chunk.bytes).toString("utf8")}`,
      );
      this.#wake();
    });
  }

  async open(): Promise<this> {
    await once(this.socket, "open");
    return this;
  }

  send(request: object): void {
    this.socket.send(JSON.stringify(request));
  }

  async until(count: number): Promise<(StreamEvent | string)[]> {
    while (this.came.length < count) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.came;
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}

/** The edge's side: the requests that came, with a function that waits for a number of them. */
function recordRequests(edge: FakeEdge): {
  readonly requests: StreamRequest[];
  until(count: number): Promise<void>;
} {
  const requests: StreamRequest[] = [];
  let wake = (): void => undefined;
  edge.streams.on("connection", (socket: WebSocket) => {
    socket.on("message", (data: Buffer) => {
      requests.push(JSON.parse(data.toString("utf8")) as StreamRequest);
      wake();
    });
  });
  return {
    requests,
    until: async (count) => {
      while (requests.length < count) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

function upstreamOf(edge: FakeEdge): WebSocket {
  const [socket] = edge.streams.clients;
  assert.ok(socket !== undefined);
  return socket;
}

const chunk = (subscription: number, text: string): Uint8Array =>
  encodeOutputChunk({ subscription, stream: 1, last: false, offset: 0, bytes: Buffer.from(text) });

async function sandboxOn(fleet: TestFleet, edge: FakeEdge): Promise<string> {
  for (;;) {
    const sandbox = (await fleet.call("POST", "/v1/sandboxes", { json: {} })).body as unknown as Sandbox;
    if (sandbox.node === edge.nodeId) return sandbox.id;
  }
}

const subscribe = (subscription: number, sandboxId: string): Partial<Subscribe> => ({
  type: "subscribe",
  subscription,
  sandboxId,
  commandId: "c000000000001",
});

test("subscriptions reach the edges of their sandboxes with defaults; output and ends come back", {
  timeout: 20_000,
}, async () => {
  await using fleet = await TestFleet.start(2);
  const [one, two] = fleet.edges;
  assert.ok(one !== undefined && two !== undefined);
  const [atOne, atTwo] = [recordRequests(one), recordRequests(two)];
  const ids = [await sandboxOn(fleet, one), await sandboxOn(fleet, two)] as const;
  using client = await new Client(fleet).open();
  client.send(subscribe(1, ids[0]));
  client.send(subscribe(2, ids[1]));
  client.send(subscribe(3, ids[0]));
  await Promise.all([atOne.until(2), atTwo.until(1)]);
  assert.deepEqual(atTwo.requests[0], {
    ...subscribe(2, ids[1]),
    output: true,
    stdoutOffset: 0,
    stderrOffset: 0,
    credit: 1024 * 1024,
  });
  assert.equal(one.streams.clients.size, 1);
  client.send({ type: "credit", subscription: 3, bytes: 5 });
  await atOne.until(3);
  assert.deepEqual(atOne.requests[2], { type: "credit", subscription: 3, bytes: 5 });
  upstreamOf(one).send(chunk(3, "abc"));
  // Not this edge's subscription, then nobody's: dropped.
  upstreamOf(one).send(chunk(2, "forged"));
  upstreamOf(one).send(chunk(9, "odd"));
  upstreamOf(one).send(JSON.stringify({ type: "ended", subscription: 3, outcome }));
  await client.until(2);
  assert.deepEqual(client.came, ["3:abc", { type: "ended", subscription: 3, outcome }]);
  // The number is free again; what has ended takes no credit.
  client.send({ type: "credit", subscription: 3, bytes: 5 });
  client.send(subscribe(3, ids[1]));
  await atTwo.until(2);
  assert.equal(atOne.requests.length, 3);
});

test("a lost edge fails its subscriptions alone, and they can be made again", {
  timeout: 20_000,
}, async () => {
  await using fleet = await TestFleet.start(2);
  const [one, two] = fleet.edges;
  assert.ok(one !== undefined && two !== undefined);
  const [atOne, atTwo] = [recordRequests(one), recordRequests(two)];
  const ids = [await sandboxOn(fleet, one), await sandboxOn(fleet, two)] as const;
  using client = await new Client(fleet).open();
  client.send(subscribe(1, ids[0]));
  client.send(subscribe(2, ids[1]));
  await Promise.all([atOne.until(1), atTwo.until(1)]);
  upstreamOf(one).terminate();
  const [lost] = await client.until(1);
  assert.ok(typeof lost === "object" && lost.type === "failed" && lost.subscription === 1);
  assert.equal(lost.code, "unavailable");
  client.send(subscribe(1, ids[0]));
  await atOne.until(2);
  upstreamOf(two).send(chunk(2, "still here"));
  await client.until(2);
  assert.equal(client.came[1], "2:still here");
  await one.stop();
  await client.until(3);
  client.send(subscribe(4, ids[0]));
  const failed = (await client.until(4))[3];
  assert.ok(typeof failed === "object" && failed.type === "failed" && failed.code === "unavailable");
});

test("an unknown sandbox fails its subscription; an edge's nonsense fails the edge's, and control goes on", {
  timeout: 20_000,
}, async () => {
  await using fleet = await TestFleet.start(1);
  const [edge] = fleet.edges;
  assert.ok(edge !== undefined);
  const at = recordRequests(edge);
  const id = await sandboxOn(fleet, edge);
  using client = await new Client(fleet).open();
  client.send(subscribe(1, `sbzzzz${id.slice(6)}`));
  const [unknown] = await client.until(1);
  assert.ok(typeof unknown === "object" && unknown.type === "failed" && unknown.code === "not_found");
  for (const nonsense of ["{", '{"type":"ended","subscription":1}', Buffer.alloc(3)]) {
    const count = client.came.length;
    client.send(subscribe(1, id));
    await at.until(at.requests.length + 1);
    upstreamOf(edge).send(nonsense);
    const failed = (await client.until(count + 1)).at(-1);
    assert.ok(typeof failed === "object" && failed.type === "failed" && failed.code === "unavailable");
  }
  assert.equal((await fleet.call("GET", "/healthz")).status, 200);
});

for (const [what, message] of [
  ["what is not JSON", "{"],
  ["an unknown request", '{"type":"other"}'],
  ["an unknown key", '{"type":"unsubscribe","subscription":1,"x":1}'],
  ["bytes", Buffer.alloc(20)],
  ["a long message", "x".repeat(5_000)],
] as const) {
  test(`a client that sends ${what} is disconnected`, { timeout: 20_000 }, async () => {
    await using fleet = await TestFleet.start(0);
    using client = await new Client(fleet).open();
    client.socket.send(message);
    const [code] = (await once(client.socket, "close")) as [number];
    assert.ok(code === 1008 || code === 1009, String(code));
  });
}

test("a client that reads slowly stops its edges, and loses nothing", { timeout: 60_000 }, async () => {
  await using fleet = await TestFleet.start(1);
  const [edge] = fleet.edges;
  assert.ok(edge !== undefined);
  const at = recordRequests(edge);
  const id = await sandboxOn(fleet, edge);
  using client = await new Client(fleet).open();
  client.send(subscribe(1, id));
  await at.until(1);
  client.socket.pause();
  const upstream = upstreamOf(edge);
  const bytes = Buffer.alloc(65_536, 97);
  const count = 1_000;
  for (let index = 0; index < count; index += 1)
    upstream.send(
      encodeOutputChunk({ subscription: 1, stream: 1, last: false, offset: index * bytes.length, bytes }),
    );
  await new Promise((resolve) => setTimeout(resolve, 500));
  // 65 MB were sent; control holds some 8 MB, socket buffers a few more, the rest waits at the edge.
  assert.ok(upstream.bufferedAmount > 20_000_000, String(upstream.bufferedAmount));
  client.socket.resume();
  await client.until(count);
  assert.ok(client.came.every((one) => one === `1:${bytes.toString("utf8")}`));
});

test("a client's end ends the connections to the edges", { timeout: 20_000 }, async () => {
  await using fleet = await TestFleet.start(1);
  const [edge] = fleet.edges;
  assert.ok(edge !== undefined);
  const at = recordRequests(edge);
  const id = await sandboxOn(fleet, edge);
  using client = await new Client(fleet).open();
  client.send(subscribe(1, id));
  await at.until(1);
  const closed = once(upstreamOf(edge), "close");
  client.socket.close();
  await closed;
});

test("keep-alives come, and a revoked key's stream is ended", { timeout: 20_000 }, async () => {
  await using fleet = await TestFleet.start(0, { keyCacheMs: 0, streamKeepAliveMs: 50 });
  await fleet.call("POST", "/v1/projects", { json: { name: "p" } });
  const made = (await fleet.call("POST", "/v1/keys", { json: { project: "p", name: "k" } }))
    .body as unknown as CreatedKey;
  using client = await new Client(fleet, made.secret).open();
  await client.until(2);
  assert.deepEqual(client.came[0], { type: "keepalive" });
  await fleet.call("DELETE", `/v1/keys/${made.key.id}`);
  const [code] = (await once(client.socket, "close")) as [number];
  assert.equal(code, 1008);
});
