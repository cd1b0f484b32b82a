import type { FileStat } from "@dsec/contracts";
import type { ChronusConnection } from "./connection.ts";
import { WireError } from "./frames.ts";
import type { NativeUser } from "./init-client.ts";
import { parseStat, parseStatAnswer, parseTruncated } from "./operations.ts";

const listingLineBytesMax = 65_536;

/** A file that is being read: `stat` first, then `chunks`; leaving the loop early gives the read up. */
export interface FileDownload {
  readonly stat: FileStat;
  readonly chunks: AsyncIterable<Buffer>;
}

/** File operations of one init. Each runs with the rights of `user` inside the sandbox. */
export class InitFiles {
  readonly #connection: ChronusConnection;

  constructor(connection: ChronusConnection) {
    this.#connection = connection;
  }

  /** At most the channel's credit of 256 KiB is in memory, however slow the reader is. */
  async read(request: {
    readonly path: string;
    readonly user: NativeUser;
    readonly offset: number;
    readonly length: number | null;
  }): Promise<FileDownload> {
    const accepted = Promise.withResolvers<FileStat>();
    const queue = new ChunkQueue();
    const channel = this.#connection.open(
      { op: "file_read", ...request },
      {
        accepted: (answer) => accepted.resolve(parseStatAnswer(answer).stat),
        data: (_stream, bytes) => queue.push(Buffer.from(bytes)),
      },
    );
    channel.ended.then(
      () => {
        accepted.reject(new WireError("A read ended before it was accepted"));
        queue.end();
      },
      (error: unknown) => {
        accepted.reject(error);
        queue.fail(error);
      },
    );
    const stat = await accepted.promise;
    async function* chunks(): AsyncGenerator<Buffer> {
      try {
        for await (const chunk of queue) {
          yield chunk;
          channel.consumed(chunk.length);
        }
      } finally {
        channel.cancel();
      }
    }
    return { stat, chunks: chunks() };
  }

  /** Writes atomically. When `content` fails, the old file stays and its error is thrown. */
  async write(
    request: {
      readonly path: string;
      readonly user: NativeUser;
      readonly mode: number;
      readonly makeParents: boolean;
    },
    content: AsyncIterable<Uint8Array>,
  ): Promise<FileStat> {
    const channel = this.#connection.open({ op: "file_write", ...request });
    try {
      for await (const chunk of content) {
        if (channel.closed) break;
        await channel.write(0, chunk);
      }
      channel.endStream(0);
    } catch (error) {
      channel.cancel();
      throw error;
    }
    return parseStatAnswer(await channel.ended).stat;
  }

  async list(request: {
    readonly path: string;
    readonly user: NativeUser;
    readonly entriesMax: number;
  }): Promise<{ readonly items: FileStat[]; readonly truncated: boolean }> {
    const items: FileStat[] = [];
    let rest: Buffer = Buffer.alloc(0);
    const channel = this.#connection.open(
      { op: "file_list", ...request },
      {
        data: (_stream, bytes) => {
          rest = takeLines(rest.length === 0 ? bytes : Buffer.concat([rest, bytes]), items);
          if (rest.length > listingLineBytesMax || items.length > request.entriesMax) {
            throw new WireError("A listing is beyond its bounds");
          }
          channel.consumed(bytes.length);
        },
      },
    );
    const { truncated } = parseTruncated(await channel.ended);
    return { items, truncated };
  }

  async stat(request: {
    readonly path: string;
    readonly user: NativeUser;
    readonly follow: boolean;
  }): Promise<FileStat> {
    return parseStatAnswer(await this.#connection.call({ op: "file_stat", ...request })).stat;
  }

  async remove(request: {
    readonly path: string;
    readonly user: NativeUser;
    readonly recursive: boolean;
  }): Promise<void> {
    await this.#connection.call({ op: "file_remove", ...request });
  }
}

/** Moves the complete lines of `bytes` to `items`; the copy of what is left. */
function takeLines(bytes: Buffer, items: FileStat[]): Buffer {
  let start = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    const line = bytes.toString("utf8", start, end);
    start = end + 1;
    if (line.length > 0) items.push(parseStat(parseJson(line)));
  }
  return Buffer.from(bytes.subarray(start));
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new WireError("A line of a listing is not JSON", { cause });
  }
}

/** Bytes between a channel and the one loop that reads them; bounded by the channel's credit. */
class ChunkQueue implements AsyncIterable<Buffer> {
  readonly #chunks: Buffer[] = [];
  #ended = false;
  #error: Error | undefined;
  #changed = Promise.withResolvers<void>();

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  fail(error: unknown): void {
    this.#error = error instanceof Error ? error : new Error(String(error));
    this.end();
  }

  #wake(): void {
    const waiting = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    waiting.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      const changed = this.#changed.promise;
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (!this.#ended) await changed;
      else if (this.#error !== undefined) throw this.#error;
      else return;
    }
  }
}
