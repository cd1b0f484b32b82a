import { type Static, Type } from "typebox";
import { Outcome } from "./commands.ts";
import { commandIdPattern, sandboxIdPattern } from "./ids.ts";

/**
 * The event stream: `GET /v1/events/stream` as WebSocket, one per client, for the ends and output of all of its commands.
 * The same messages run between apiserver and edge. Client messages and server events are JSON text; output is binary:
 *
 *     u32 subscription | u8 stream (1 stdout, 2 stderr) | u8 flags (bit 0: end of the stream) | u64 offset | bytes
 *
 * all little-endian, 14 bytes of header, at most 65,536 bytes of output a message. `offset` counts all bytes ever written
 * to the stream, so a jump means dropped bytes. Credit: bytes of output the server may send for a subscription; both streams share it.
 */
const strict = { additionalProperties: false } as const;
const Subscription = Type.Integer({ minimum: 1, maximum: 0xffff_ffff });

export const outputHeaderBytes = 14;
export const outputChunkBytesMax = 65_536;
/** Credit that a subscription starts with when it names none; also the most that may be outstanding. */
export const creditBytesDefault = 1024 * 1024;
export const creditBytesMax = 16 * 1024 * 1024;

export const Subscribe = Type.Object(
  {
    type: Type.Literal("subscribe"),
    /** Chosen by the client, unique in the connection. */
    subscription: Subscription,
    sandboxId: Type.String({ pattern: sandboxIdPattern }),
    commandId: Type.String({ pattern: commandIdPattern }),
    /** False: only the end is wanted. */
    output: Type.Boolean({ default: true }),
    stdoutOffset: Type.Integer({ minimum: 0, default: 0 }),
    stderrOffset: Type.Integer({ minimum: 0, default: 0 }),
    credit: Type.Integer({ minimum: 0, maximum: creditBytesMax, default: creditBytesDefault }),
  },
  strict,
);
export type Subscribe = Static<typeof Subscribe>;

export const Unsubscribe = Type.Object(
  { type: Type.Literal("unsubscribe"), subscription: Subscription },
  strict,
);
export const Credit = Type.Object(
  {
    type: Type.Literal("credit"),
    subscription: Subscription,
    bytes: Type.Integer({ minimum: 1, maximum: creditBytesMax }),
  },
  strict,
);
export const StreamRequest = Type.Union([Subscribe, Unsubscribe, Credit]);
export type StreamRequest = Static<typeof StreamRequest>;

/** After the last output of the subscription; it is closed then. */
export const CommandEnded = Type.Object(
  { type: Type.Literal("ended"), subscription: Subscription, outcome: Outcome },
  strict,
);
/** The subscription failed and is closed: unknown command, sandbox gone, node unreachable. */
export const SubscriptionFailed = Type.Object(
  {
    type: Type.Literal("failed"),
    subscription: Subscription,
    code: Type.String(),
    message: Type.String(),
  },
  strict,
);
/** Sent every 20 s so that proxies with idle timeouts keep the connection. */
export const KeepAlive = Type.Object({ type: Type.Literal("keepalive") }, strict);
export const StreamEvent = Type.Union([CommandEnded, SubscriptionFailed, KeepAlive]);
export type StreamEvent = Static<typeof StreamEvent>;

export interface OutputChunk {
  readonly subscription: number;
  readonly stream: 1 | 2;
  readonly last: boolean;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** One binary message. `bytes` is copied. */
export function encodeOutputChunk(chunk: OutputChunk): Uint8Array {
  const message = new Uint8Array(outputHeaderBytes + chunk.bytes.length);
  const view = new DataView(message.buffer);
  view.setUint32(0, chunk.subscription, true);
  view.setUint8(4, chunk.stream);
  view.setUint8(5, chunk.last ? 1 : 0);
  view.setBigUint64(6, BigInt(chunk.offset), true);
  message.set(chunk.bytes, outputHeaderBytes);
  return message;
}

/** The chunk of a binary message, or undefined when it is not one. `bytes` is a view of `message`. */
export function decodeOutputChunk(message: Uint8Array): OutputChunk | undefined {
  if (message.length < outputHeaderBytes || message.length > outputHeaderBytes + outputChunkBytesMax)
    return undefined;
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const stream = view.getUint8(4);
  const flags = view.getUint8(5);
  const offset = Number(view.getBigUint64(6, true));
  if ((stream !== 1 && stream !== 2) || flags > 1 || !Number.isSafeInteger(offset)) return undefined;
  return {
    subscription: view.getUint32(0, true),
    stream,
    last: flags === 1,
    offset,
    bytes: message.subarray(outputHeaderBytes),
  };
}
