import { connect, type Socket } from "node:net";
import {
  Channel,
  type ChannelHandlers,
  type ChannelSender,
  isOperationErrorCode,
  OperationError,
} from "./channel.ts";
import {
  encodeData,
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameType,
  frameTypes,
  parseObject,
  WireError,
} from "./frames.ts";
import { type Hello, negotiate, ourHello } from "./hello.ts";

const channelsMax = 4_096;
const empty = Buffer.alloc(0);
/** The peer is asked for a sign of life after this many silent ticks. */
const pingAfterTicks = 5;

export interface ConnectionHandlers {
  readonly event: (event: Record<string, unknown>) => void;
  /** Called once, after every channel was closed. */
  readonly closed: (reason: string) => void;
  /** The peer opened a channel; without this handler it is denied. */
  readonly opened?: (request: Record<string, unknown>, channel: Channel) => void;
}

/**
 * Connects to a chronus socket and exchanges HELLO. Rejects when nobody listens, when no version is in common, or when
 * `signal` aborts first.
 */
export async function connectChronus(
  socketPath: string,
  handlers: ConnectionHandlers,
  signal: AbortSignal,
): Promise<ChronusConnection> {
  signal.throwIfAborted();
  const socket = connect({ path: socketPath });
  const greeted = Promise.withResolvers<ChronusConnection>();
  const connection = new ChronusConnection(socket, handlers, greeted);
  const abort = (): void => connection.close("the connection was given up");
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await greeted.promise;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** One connection to a spawner or an init. Any violation by the peer closes it. */
export class ChronusConnection {
  readonly #socket: Socket;
  readonly #handlers: ConnectionHandlers;
  readonly #decoder = new FrameDecoder();
  readonly #channels = new Map<number, Channel>();
  readonly #greeted: PromiseWithResolvers<ChronusConnection>;
  readonly #sender: ChannelSender;
  #peer: Hello | undefined;
  #nextChannel = 1;
  #lastPeerChannel = 0;
  #silentTicks = 0;
  #isCorked = false;
  #closed: string | undefined;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(
    socket: Socket,
    handlers: ConnectionHandlers,
    greeted: PromiseWithResolvers<ChronusConnection>,
  ) {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#greeted = greeted;
    this.#sender = this.#makeSender();
    let failure = "the peer closed the connection";
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("drain", () => this.#releaseWriters());
    socket.on("error", (error) => {
      failure = error.message;
    });
    socket.on("close", () => this.#finish(failure));
    this.#send(frameTypes.hello, 0, json(ourHello));
  }

  /** What the peer said of itself. */
  get peer(): Hello {
    if (this.#peer === undefined) throw new WireError("The peer has not said HELLO");
    return this.#peer;
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  /** Starts an operation. Throws WireError when the connection is closed and OperationError `too_many` beyond 4,096 channels. */
  open(request: object, handlers: ChannelHandlers = {}): Channel {
    if (this.#closed !== undefined) throw new WireError(`The connection is closed: ${this.#closed}`);
    if (this.#channels.size >= channelsMax)
      throw new OperationError("too_many", "Too many operations at once");
    const payload = json(request);
    const channel = new Channel(this.#nextChannel, this.#sender, handlers);
    this.#nextChannel += 2;
    this.#channels.set(channel.id, channel);
    this.#send(frameTypes.open, channel.id, payload);
    return channel;
  }

  /** An operation without streams: its answer. */
  async call(request: object, signal?: AbortSignal): Promise<Record<string, unknown>> {
    signal?.throwIfAborted();
    const channel = this.open(request);
    const cancel = (): void => channel.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await channel.ended;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Counts one more period without a byte from the peer, and asks it for a sign of life when it is time. */
  tick(): number {
    this.#silentTicks++;
    if (this.#silentTicks === pingAfterTicks) this.#send(frameTypes.ping, 0, empty);
    return this.#silentTicks;
  }

  /** Ends the connection; open operations end with WireError. */
  close(reason: string): void {
    this.#socket.destroy();
    this.#finish(reason);
  }

  #receive(chunk: Buffer): void {
    this.#silentTicks = 0;
    try {
      for (const frame of this.#decoder.push(chunk)) {
        if (this.#closed !== undefined) return;
        this.#dispatch(frame);
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.close(error.message);
    }
  }

  #dispatch(frame: Frame): void {
    if (this.#peer === undefined) {
      this.#greet(frame);
      return;
    }
    if (frame.channel === 0) this.#onConnectionFrame(frame);
    else if (frame.channel % 2 === 0) this.#onPeerChannelFrame(frame);
    else this.#onOwnChannelFrame(frame);
  }

  #greet(frame: Frame): void {
    if (frame.type !== frameTypes.hello || frame.channel !== 0)
      throw new WireError("The first frame is not HELLO");
    this.#peer = negotiate(parseObject(frame.payload));
    this.#greeted.resolve(this);
  }

  #onConnectionFrame(frame: Frame): void {
    if (frame.type === frameTypes.event) this.#handlers.event(parseObject(frame.payload));
    else if (frame.type !== frameTypes.pong) throw new WireError(`Frame type ${frame.type} on channel 0`);
  }

  #onOwnChannelFrame(frame: Frame): void {
    const channel = this.#channels.get(frame.channel);
    if (channel === undefined) throw new WireError(`Channel ${frame.channel} is not open`);
    if (frame.type === frameTypes.accept) channel.received.accept(parseObject(frame.payload));
    else if (frame.type === frameTypes.end) this.#onEnd(channel, parseObject(frame.payload));
    else onStreamFrame(channel, frame);
  }

  #onEnd(channel: Channel, { ok, error }: Record<string, unknown>): void {
    this.#channels.delete(channel.id);
    if (isRecord(ok) && error === undefined) {
      channel.close(undefined, ok);
      return;
    }
    const code = isRecord(error) ? error["code"] : undefined;
    if (!isRecord(error) || !isOperationErrorCode(code))
      throw new WireError("END is neither ok nor a known error");
    const message = typeof error["message"] === "string" ? error["message"].slice(0, 1_024) : "";
    channel.close(new OperationError(code, message), {});
  }

  #onPeerChannelFrame(frame: Frame): void {
    if (frame.type === frameTypes.open) {
      this.#onOpen(frame);
      return;
    }
    const channel = this.#channels.get(frame.channel);
    // What the peer sent before it knew of our END arrives after it.
    if (channel === undefined && frame.channel <= this.#lastPeerChannel) return;
    if (channel === undefined) throw new WireError(`Channel ${frame.channel} is not open`);
    if (frame.type !== frameTypes.cancel) onStreamFrame(channel, frame);
    else channel.end({ error: { code: "cancelled", message: "The operation was given up" } });
  }

  #onOpen(frame: Frame): void {
    if (frame.channel <= this.#lastPeerChannel)
      throw new WireError(`Channel ${frame.channel} was used before`);
    this.#lastPeerChannel = frame.channel;
    const request = parseObject(frame.payload);
    if (this.#handlers.opened === undefined || this.#channels.size >= channelsMax) {
      const code = this.#handlers.opened === undefined ? "denied" : "too_many";
      this.#send(
        frameTypes.end,
        frame.channel,
        json({ error: { code, message: "The channel was refused" } }),
      );
      return;
    }
    const channel = new Channel(frame.channel, this.#sender, {});
    this.#channels.set(channel.id, channel);
    this.#handlers.opened(request, channel);
  }

  #makeSender(): ChannelSender {
    return {
      data: (channel, stream, bytes) => this.#write(encodeData(channel, stream, bytes)),
      eof: (channel, stream) => this.#send(frameTypes.eof, channel, Buffer.of(stream)),
      cancel: (channel) => this.#send(frameTypes.cancel, channel, empty),
      credit: (channel, bytes) => {
        const payload = Buffer.allocUnsafe(4);
        payload.writeUInt32LE(bytes, 0);
        this.#send(frameTypes.credit, channel, payload);
      },
      accept: (channel, answer) => this.#send(frameTypes.accept, channel, json(answer)),
      end: (channel, result) => {
        this.#channels.delete(channel);
        this.#send(frameTypes.end, channel, json(result));
      },
      drained: async () => this.#drained?.promise,
    };
  }

  #send(type: FrameType, channel: number, payload: Uint8Array): void {
    this.#write(encodeFrame(type, channel, payload));
  }

  #write(bytes: Buffer): void {
    if (this.#closed !== undefined) return;
    if (!this.#isCorked) {
      // What one turn of the event loop writes leaves in one system call.
      this.#isCorked = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#socket.uncork();
      });
    }
    if (!this.#socket.write(bytes)) this.#drained ??= Promise.withResolvers<void>();
  }

  #releaseWriters(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  #finish(reason: string): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#releaseWriters();
    const lost = new WireError(`The connection was lost: ${reason}`);
    this.#greeted.reject(lost);
    for (const channel of this.#channels.values()) channel.close(lost, {});
    this.#channels.clear();
    if (this.#peer !== undefined) this.#handlers.closed(reason);
  }
}

function onStreamFrame(channel: Channel, { type, payload }: Frame): void {
  const stream = payload[0] ?? -1;
  if (type === frameTypes.data && payload.length > 1) channel.received.data(stream, payload.subarray(1));
  else if (type === frameTypes.eof && payload.length === 1) channel.received.eof(stream);
  else if (type === frameTypes.credit && payload.length === 4)
    channel.received.credit(payload.readUInt32LE(0));
  else if (type === frameTypes.gap && payload.length === 9) channel.received.gap(stream, gapBytes(payload));
  else throw new WireError(`Frame type ${type} of ${payload.length} bytes is not allowed here`);
}

function gapBytes(payload: Buffer): number {
  const bytes = Number(payload.readBigUInt64LE(1));
  if (!Number.isSafeInteger(bytes)) throw new WireError("A gap is too long");
  return bytes;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value), "utf8");
}
