/** Frames of the chronus protocol (native/chronus/PROTOCOL.md, sections 1 and 2). */
export const frameTypes = {
  hello: 0x01,
  open: 0x02,
  accept: 0x03,
  end: 0x04,
  cancel: 0x05,
  data: 0x06,
  eof: 0x07,
  credit: 0x08,
  event: 0x09,
  ping: 0x0a,
  pong: 0x0b,
  gap: 0x0c,
} as const;
export type FrameType = (typeof frameTypes)[keyof typeof frameTypes];

export const payloadBytesMax = 262_144;
/** A DATA payload without its stream byte. */
export const dataBytesMax = payloadBytesMax - 1;
const headerBytes = 9;
const lengthMin = 5;
const lengthMax = lengthMin + payloadBytesMax;
const knownTypes: ReadonlySet<number> = new Set(Object.values(frameTypes));

export interface Frame {
  readonly type: FrameType;
  readonly channel: number;
  /** A view of received bytes: copy what must outlive the current turn. */
  readonly payload: Buffer;
}

/** The peer broke the protocol, or the connection ended where it must not. The connection is of no more use. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/** One frame ready to be written. */
export function encodeFrame(type: FrameType, channel: number, payload: Uint8Array): Buffer {
  if (payload.length > payloadBytesMax)
    throw new WireError(`A payload of ${payload.length} bytes is too long`);
  const frame = Buffer.allocUnsafe(headerBytes + payload.length);
  writeHeader(frame, type, channel);
  frame.set(payload, headerBytes);
  return frame;
}

/** One DATA frame; `bytes` must hold 1 to `dataBytesMax` bytes. */
export function encodeData(channel: number, stream: number, bytes: Uint8Array): Buffer {
  if (bytes.length === 0 || bytes.length > dataBytesMax) {
    throw new WireError(`DATA of ${bytes.length} bytes is not allowed`);
  }
  const frame = Buffer.allocUnsafe(headerBytes + 1 + bytes.length);
  writeHeader(frame, frameTypes.data, channel);
  frame[headerBytes] = stream;
  frame.set(bytes, headerBytes + 1);
  return frame;
}

function writeHeader(frame: Buffer, type: FrameType, channel: number): void {
  frame.writeUInt32LE(frame.length - 4, 0);
  frame.writeUInt8(type, 4);
  frame.writeUInt32LE(channel, 5);
}

/**
 * Cuts a byte stream into frames. Holds at most one incomplete frame, so at most `lengthMax` + 4 bytes and one chunk.
 * After it has thrown WireError it must not be used again.
 */
export class FrameDecoder {
  #chunks: Buffer[] = [];
  #buffered = 0;
  #needed = headerBytes;

  /** All frames that `chunk` completes, in order. */
  push(chunk: Buffer): Frame[] {
    if (chunk.length === 0) return [];
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    if (this.#buffered < this.#needed) return [];
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#buffered);
    const frames: Frame[] = [];
    this.#needed = headerBytes;
    while (rest.length >= headerBytes) {
      const size = 4 + checkedLength(rest);
      if (rest.length < size) {
        this.#needed = size;
        break;
      }
      frames.push({
        type: checkedType(rest),
        channel: rest.readUInt32LE(5),
        payload: rest.subarray(headerBytes, size),
      });
      rest = rest.subarray(size);
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#buffered = rest.length;
    return frames;
  }
}

function checkedLength(header: Buffer): number {
  const length = header.readUInt32LE(0);
  if (length < lengthMin || length > lengthMax)
    throw new WireError(`A frame length of ${length} is not allowed`);
  return length;
}

function checkedType(header: Buffer): FrameType {
  const type = header.readUInt8(4);
  if (!isFrameType(type)) throw new WireError(`Frame type ${type} is unknown`);
  return type;
}

function isFrameType(type: number): type is FrameType {
  return knownTypes.has(type);
}

/** Payload of an OPEN, ACCEPT, END, EVENT or HELLO. Throws WireError when it is not a JSON object. */
export function parseObject(payload: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString("utf8"));
  } catch (cause) {
    throw new WireError("A payload is not JSON", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new WireError("A payload is not a JSON object");
  }
  return value as Record<string, unknown>;
}
