import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { encodeData, encodeFrame, FrameDecoder, type FrameType, frameTypes, parseObject } from "../frames.ts";

type Json = Record<string, unknown>;

/** The peer's side of one operation. */
export interface FakeOperation {
  readonly request: Json;
  /** Input that arrived so far on stream 0, and whether it ended. */
  readonly input: Buffer[];
  readonly inputEnded: Promise<void>;
  readonly cancelled: AbortSignal;
  accept(answer: Json): void;
  data(stream: number, bytes: Uint8Array): void;
  gap(stream: number, bytes: number): void;
  eof(stream: number): void;
  end(ok: Json): void;
  fail(code: string, message: string): void;
}

/** chronus's end of the protocol over a real unix socket, with the answers of a handler instead of a kernel. */
export class FakePeer implements AsyncDisposable {
  readonly #server: Server;
  readonly #hello: Json;
  readonly #handler: (operation: FakeOperation) => void;
  #socket: Socket | undefined;
  /** Stops answering anything, as a stopped process does. */
  silent = false;

  private constructor(hello: Json, handler: (operation: FakeOperation) => void) {
    this.#hello = { protocol: { min: 1, max: 1 }, bootId: randomBytes(16).toString("hex"), ...hello };
    this.#handler = handler;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async listen(
    path: string,
    hello: Json,
    handler: (operation: FakeOperation) => void,
  ): Promise<FakePeer> {
    const peer = new FakePeer(hello, handler);
    peer.#server.listen(path);
    await once(peer.#server, "listening");
    return peer;
  }

  event(event: Json): void {
    this.#send(frameTypes.event, 0, event);
  }

  /** Writes bytes as they are: for violations. */
  raw(bytes: Uint8Array): void {
    this.#socket?.write(bytes);
  }

  /** Ends the connection as a killed process would. */
  drop(): void {
    this.#socket?.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  #send(type: FrameType, channel: number, payload: Json): void {
    this.raw(encodeFrame(type, channel, Buffer.from(JSON.stringify(payload))));
  }

  #serve(socket: Socket): void {
    this.#socket?.destroy();
    this.#socket = socket;
    const decoder = new FrameDecoder();
    const operations = new Map<number, { input: Buffer[]; eof: () => void; cancel: () => void }>();
    // The other side may be gone at any time; the tests look at what it makes of that.
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      if (this.silent) return;
      for (const { type, channel, payload } of decoder.push(chunk)) {
        const operation = operations.get(channel);
        if (type === frameTypes.ping) this.raw(encodeFrame(frameTypes.pong, 0, payload));
        else if (type === frameTypes.open)
          operations.set(channel, this.#open(socket, channel, parseObject(payload)));
        else if (type === frameTypes.data) operation?.input.push(Buffer.from(payload.subarray(1)));
        else if (type === frameTypes.eof) operation?.eof();
        else if (type === frameTypes.cancel) operation?.cancel();
      }
    });
    this.#send(frameTypes.hello, 0, this.#hello);
  }

  #open(
    socket: Socket,
    channel: number,
    request: Json,
  ): { input: Buffer[]; eof: () => void; cancel: () => void } {
    const ended = Promise.withResolvers<void>();
    const cancel = new AbortController();
    const input: Buffer[] = [];
    let closed = false;
    const raw = (bytes: Uint8Array): void => {
      if (!socket.destroyed) socket.write(bytes);
    };
    const send = (type: FrameType, payload: Json): void =>
      raw(encodeFrame(type, channel, Buffer.from(JSON.stringify(payload))));
    const close = (payload: Json): void => {
      if (!closed) send(frameTypes.end, payload);
      closed = true;
    };
    this.#handler({
      request,
      input,
      inputEnded: ended.promise,
      cancelled: cancel.signal,
      accept: (answer) => send(frameTypes.accept, answer),
      data: (stream, bytes) => raw(encodeData(channel, stream, bytes)),
      eof: (stream) => raw(encodeFrame(frameTypes.eof, channel, Buffer.of(stream))),
      gap: (stream, bytes) => {
        const payload = Buffer.alloc(9);
        payload.writeUInt8(stream, 0);
        payload.writeBigUInt64LE(BigInt(bytes), 1);
        raw(encodeFrame(frameTypes.gap, channel, payload));
      },
      end: (ok) => close({ ok }),
      fail: (code, message) => close({ error: { code, message } }),
    });
    return { input, eof: () => ended.resolve(), cancel: () => cancel.abort() };
  }
}
