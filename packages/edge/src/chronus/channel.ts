import { dataBytesMax, WireError } from "./frames.ts";

/** Credit that each direction of a channel starts with. */
export const initialCreditBytes = 262_144;
const creditBytesMax = 16 * 1024 * 1024;
/** Credit is returned in steps, so that small outputs cost no frame. */
const creditStepBytes = 65_536;
const sendPieceBytes = 65_536;

const operationErrors = [
  "invalid",
  "not_found",
  "denied",
  "exists",
  "not_directory",
  "is_directory",
  "not_empty",
  "disk_quota",
  "too_large",
  "too_many",
  "busy",
  "cancelled",
  "deadline",
  "agent_killed",
  "conflict",
  "internal",
] as const;
export type OperationErrorCode = (typeof operationErrors)[number];

export function isOperationErrorCode(text: unknown): text is OperationErrorCode {
  return (operationErrors as readonly unknown[]).includes(text);
}

/** chronus answered an operation with an error; the connection is well. */
export class OperationError extends Error {
  override readonly name = "OperationError";
  readonly code: OperationErrorCode;

  constructor(code: OperationErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What the owner of a channel hears. `data` gives views of received bytes; call `consumed` when they are dealt with. */
export interface ChannelHandlers {
  readonly accepted?: (answer: Record<string, unknown>) => void;
  readonly data?: (stream: number, bytes: Buffer) => void;
  readonly gap?: (stream: number, bytes: number) => void;
  readonly eof?: (stream: number) => void;
}

/** The side of the connection that a channel writes to. */
export interface ChannelSender {
  data(channel: number, stream: number, bytes: Uint8Array): void;
  eof(channel: number, stream: number): void;
  cancel(channel: number): void;
  credit(channel: number, bytes: number): void;
  accept(channel: number, answer: object): void;
  end(channel: number, result: object): void;
  /** Resolves when the socket takes more, or is gone. */
  drained(): Promise<void>;
}

/** One operation. Made by a connection; closed by END of the peer, by `end`, or by the loss of the connection. */
export class Channel {
  readonly id: number;
  /** The answer of END; rejects with OperationError, or with WireError when the connection is lost. */
  readonly ended: Promise<Record<string, unknown>>;
  readonly #sender: ChannelSender;
  readonly #handlers: ChannelHandlers;
  readonly #end = Promise.withResolvers<Record<string, unknown>>();
  #accepted = false;
  #closed = false;
  #sendCredit = initialCreditBytes;
  #receiveCredit = initialCreditBytes;
  #consumedBytes = 0;
  #creditArrived = Promise.withResolvers<void>();

  constructor(id: number, sender: ChannelSender, handlers: ChannelHandlers) {
    this.id = id;
    this.#sender = sender;
    this.#handlers = handlers;
    this.ended = this.#end.promise;
    // Whoever waits for the end sees the error; a channel that nobody waits for must not end the process.
    this.ended.catch(() => undefined);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends `bytes` within credit. Writes of one channel must not overlap. Returns early when the channel closes. */
  async write(stream: number, bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0 && !this.#closed) {
      if (this.#sendCredit === 0) {
        await this.#creditArrived.promise;
        continue;
      }
      const piece = rest.subarray(0, Math.min(this.#sendCredit, sendPieceBytes, dataBytesMax));
      this.#sendCredit -= piece.length;
      this.#sender.data(this.id, stream, piece);
      rest = rest.subarray(piece.length);
      await this.#sender.drained();
    }
  }

  endStream(stream: number): void {
    if (!this.#closed) this.#sender.eof(this.id, stream);
  }

  /** Gives the operation up; `ended` still tells how it ended. */
  cancel(): void {
    if (!this.#closed) this.#sender.cancel(this.id);
  }

  /** Lets the peer send that many more bytes, since so many were dealt with. */
  consumed(bytes: number): void {
    this.#consumedBytes += bytes;
    if (this.#consumedBytes < creditStepBytes || this.#closed) return;
    this.#receiveCredit += this.#consumedBytes;
    this.#sender.credit(this.id, this.#consumedBytes);
    this.#consumedBytes = 0;
  }

  /** For channels that the peer opened. */
  accept(answer: object): void {
    if (!this.#closed) this.#sender.accept(this.id, answer);
  }

  /** For channels that the peer opened: answers and closes. */
  end(
    result: { readonly ok: object } | { readonly error: { code: OperationErrorCode; message: string } },
  ): void {
    if (this.#closed) return;
    this.#sender.end(this.id, result);
    this.close("ok" in result ? undefined : new OperationError(result.error.code, result.error.message), {});
  }

  /** Called by the connection alone, for a frame of the peer. */
  received = {
    accept: (answer: Record<string, unknown>): void => {
      if (this.#accepted) throw new WireError("A channel was accepted twice");
      this.#accepted = true;
      this.#handlers.accepted?.(answer);
    },
    data: (stream: number, bytes: Buffer): void => {
      this.#receiveCredit -= bytes.length;
      if (this.#receiveCredit < 0) throw new WireError("A channel got more than its credit");
      if (this.#handlers.data === undefined) this.consumed(bytes.length);
      else this.#handlers.data(stream, bytes);
    },
    gap: (stream: number, bytes: number): void => this.#handlers.gap?.(stream, bytes),
    eof: (stream: number): void => this.#handlers.eof?.(stream),
    credit: (bytes: number): void => {
      this.#sendCredit += bytes;
      if (this.#sendCredit > creditBytesMax) throw new WireError("Credit grew beyond its bound");
      this.#wakeWriters();
    },
  };

  /** Called by the connection alone: the channel is over. */
  close(error: Error | undefined, answer: Record<string, unknown>): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wakeWriters();
    if (error === undefined) this.#end.resolve(answer);
    else this.#end.reject(error);
  }

  #wakeWriters(): void {
    const waiting = this.#creditArrived;
    this.#creditArrived = Promise.withResolvers<void>();
    waiting.resolve();
  }
}
