import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { OperationError } from "./channel.ts";
import { connectChronus } from "./connection.ts";
import { type FakeOperation, FakePeer } from "./fakes/fake-peer.ts";
import { encodeFrame, frameTypes, WireError } from "./frames.ts";

const soon = (): AbortSignal => AbortSignal.timeout(5_000);

function socketPath(context: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "dsec-connection-"));
  context.after(() => rmSync(directory, { recursive: true }));
  return join(directory, "peer.sock");
}

async function connected(
  context: TestContext,
  handler: (operation: FakeOperation) => void,
): Promise<{
  peer: FakePeer;
  connection: Awaited<ReturnType<typeof connectChronus>>;
  closed: Promise<string>;
}> {
  const path = socketPath(context);
  const closed = Promise.withResolvers<string>();
  const peer = await FakePeer.listen(path, { role: "init", sandboxId: "x" }, handler);
  const connection = await connectChronus(path, { event: () => undefined, closed: closed.resolve }, soon());
  context.after(async () => {
    connection.close("the test is over");
    await peer[Symbol.asyncDispose]();
  });
  return { peer, connection, closed: closed.promise };
}

test("call() gives the answer of END and throws OperationError for its error", async (context) => {
  const { connection } = await connected(context, (operation) => {
    if (operation.request["op"] === "good") operation.end({ value: 1 });
    else operation.fail("not_found", "no such thing");
  });
  assert.deepEqual(await connection.call({ op: "good" }), { value: 1 });
  await assert.rejects(connection.call({ op: "bad" }), (error) => {
    return error instanceof OperationError && error.code === "not_found";
  });
});

test("call() gives the operation up when its signal aborts", async (context) => {
  const { connection } = await connected(context, (operation) => {
    operation.cancelled.addEventListener("abort", () => operation.fail("cancelled", "given up"));
  });
  const aborter = new AbortController();
  const call = connection.call({ op: "long" }, aborter.signal);
  aborter.abort();
  await assert.rejects(call, (error) => error instanceof OperationError && error.code === "cancelled");
});

test("a peer of another protocol version is refused", async (context) => {
  const path = socketPath(context);
  await using _peer = await FakePeer.listen(
    path,
    { role: "init", protocol: { min: 2, max: 3 } },
    () => undefined,
  );
  const handlers = { event: () => undefined, closed: () => undefined };
  await assert.rejects(connectChronus(path, handlers, soon()), WireError);
});

test("the highest common version is used with a peer that has newer ones and unknown keys", async (context) => {
  const path = socketPath(context);
  const hello = { role: "init", protocol: { min: 1, max: 9 }, novelty: true };
  await using _peer = await FakePeer.listen(path, hello, () => undefined);
  const connection = await connectChronus(path, { event: () => undefined, closed: () => undefined }, soon());
  assert.equal(connection.peer.version, 1);
  connection.close("done");
});

test("the loss of the connection ends every open operation with WireError", async (context) => {
  const { peer, connection, closed } = await connected(context, () => undefined);
  const calls = [connection.call({ op: "a" }), connection.call({ op: "b" })];
  setImmediate(() => peer.drop());
  for (const call of calls) await assert.rejects(call, WireError);
  await closed;
  assert.throws(() => connection.open({ op: "c" }), WireError);
});

test("more data than the credit allows closes the connection", async (context) => {
  const { connection, closed } = await connected(context, (operation) => {
    for (let i = 0; i < 5; i++) operation.data(1, Buffer.alloc(65_536));
  });
  connection.open({ op: "flood" }, { data: () => undefined });
  assert.match(await closed, /credit/);
});

test("a reader that consumes gets any amount of data", async (context) => {
  const total = 40 * 65_536;
  const { connection } = await connected(context, (operation) => void flow(operation));
  async function flow(operation: FakeOperation): Promise<void> {
    // The fake has no credit of its own: it sends a piece for each that the reader has consumed.
    for (let i = 0; i < 40; i++) {
      operation.data(1, Buffer.alloc(65_536));
      await new Promise((resolve) => setImmediate(resolve));
      await received(i + 1);
    }
    operation.end({});
  }
  let bytes = 0;
  const received = async (pieces: number): Promise<void> => {
    while (bytes < pieces * 65_536) await new Promise((resolve) => setImmediate(resolve));
  };
  const channel = connection.open(
    { op: "flow" },
    {
      data: (_stream, chunk) => {
        bytes += chunk.length;
        channel.consumed(chunk.length);
      },
    },
  );
  await channel.ended;
  assert.equal(bytes, total);
});

test("write() stops at the credit of the peer and ends when the channel does", async (context) => {
  const { connection } = await connected(context, (operation) => {
    setTimeout(
      () => operation.end({ got: operation.input.reduce((sum, chunk) => sum + chunk.length, 0) }),
      50,
    );
  });
  const channel = connection.open({ op: "take" });
  await channel.write(0, Buffer.alloc(1_000_000));
  assert.deepEqual(await channel.ended, { got: 262_144 });
});

test("frames that the protocol does not allow close the connection", async (context) => {
  const bad = [
    encodeFrame(frameTypes.data, 7, Buffer.of(1, 2)),
    encodeFrame(frameTypes.hello, 0, Buffer.from("{}")),
    encodeFrame(frameTypes.event, 0, Buffer.from("[]")),
    encodeFrame(frameTypes.accept, 2, Buffer.from("{}")),
    encodeFrame(frameTypes.open, 3, Buffer.from("{}")),
  ];
  for (const bytes of bad) {
    const { peer, closed } = await connected(context, () => undefined);
    peer.raw(bytes);
    await closed;
  }
});

test("a channel that the peer opens is denied when nothing is granted", async (context) => {
  const { peer, connection } = await connected(context, (operation) => operation.end({}));
  peer.raw(encodeFrame(frameTypes.open, 2, Buffer.from(JSON.stringify({ op: "stream", service: "x" }))));
  await connection.call({ op: "still there" });
  assert.equal(connection.closed, false);
});

test("any bytes of a peer end in frames or in a closed connection", async (context) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
      const path = socketPath(context);
      await using peer = await FakePeer.listen(path, { role: "init" }, () => undefined);
      const connection = await connectChronus(
        path,
        { event: () => undefined, closed: () => undefined },
        soon(),
      );
      peer.raw(bytes);
      await new Promise((resolve) => setImmediate(resolve));
      connection.close("done");
    }),
    { numRuns: 50 },
  );
});

test("tick() counts silence and asks the peer, whose answer ends it", async (context) => {
  const { peer, connection } = await connected(context, () => undefined);
  for (let i = 1; i < 5; i++) assert.equal(connection.tick(), i);
  assert.equal(connection.tick(), 5);
  while (connection.tick() > 1) await new Promise((resolve) => setImmediate(resolve));
  peer.silent = true;
  for (let i = 2; i <= 11; i++) assert.equal(connection.tick(), i);
});
