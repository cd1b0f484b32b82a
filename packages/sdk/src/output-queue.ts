const unreadBytesMax = 8 * 1024 * 1024;

/**
 * Output of one stream on its way to its reader. While nobody reads, bytes are acknowledged on arrival and the oldest
 * beyond 8 MiB are dropped and counted, so that an unread stream never stops the other; once read, they are acknowledged as
 * the reader takes them.
 */
export class OutputQueue {
  readonly #acknowledge: (bytes: number) => void;
  #chunks: Uint8Array[] = [];
  #unreadBytes = 0;
  #isRead = false;
  #end: { readonly error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;
  #droppedBytes = 0;

  constructor(acknowledge: (bytes: number) => void) {
    this.#acknowledge = acknowledge;
  }

  /** Bytes that never reached the reader: dropped by the platform's caps or here. */
  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** Bytes that came and are not acknowledged. */
  get heldBytes(): number {
    return this.#isRead ? this.#unreadBytes : 0;
  }

  countDropped(bytes: number): void {
    this.#droppedBytes += bytes;
  }

  push(bytes: Uint8Array): void {
    if (this.#end !== undefined || bytes.length === 0) return;
    this.#chunks.push(bytes);
    this.#unreadBytes += bytes.length;
    if (!this.#isRead) {
      this.#acknowledge(bytes.length);
      this.#dropOldest();
    }
    this.#wake?.();
  }

  /** No more bytes come; with `error` the reader gets it after the last of them. */
  finish(error?: Error): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** May be called once. Ending the iteration early lets the rest pass unread. */
  async *read(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#isRead) throw new TypeError("this output is being read already");
    this.#isRead = true;
    // What lies here was acknowledged when it came.
    let acknowledged = this.#unreadBytes;
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#unreadBytes -= chunk.length;
          const known = Math.min(acknowledged, chunk.length);
          acknowledged -= known;
          if (chunk.length > known) this.#acknowledge(chunk.length - known);
          yield chunk;
        } else if (this.#end !== undefined) {
          if (this.#end.error !== undefined) throw this.#end.error;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = undefined;
        }
      }
    } finally {
      this.#end ??= { error: undefined };
      const held = this.#unreadBytes - acknowledged;
      this.#chunks = [];
      this.#unreadBytes = 0;
      if (held > 0) this.#acknowledge(held);
    }
  }

  #dropOldest(): void {
    while (this.#unreadBytes > unreadBytesMax) {
      const chunk = this.#chunks.shift();
      if (chunk === undefined) return;
      this.#unreadBytes -= chunk.length;
      this.#droppedBytes += chunk.length;
    }
  }
}
