import {
  creditBytesMax,
  encodeOutputChunk,
  type Outcome,
  outputChunkBytesMax,
  type StreamEvent,
  type Subscribe,
} from "@dsec/contracts";
import { asPlatformError } from "@dsec/kit";
import type { LiveSandbox } from "../sandbox/live-sandbox.ts";

export interface SubscriptionSink {
  readonly send: (message: Uint8Array | StreamEvent) => void;
  /** Called once, after the last message. */
  readonly over: () => void;
}

/** Where a subscription gets what it tells. */
export interface SubscriptionSource {
  /** The outcome of a command whose sandbox has ended, and its output with it; undefined while the sandbox lives. */
  readonly recorded: (commandId: string) => Outcome | undefined;
  /** Throws when there is no such sandbox, or it does not run. */
  readonly live: () => LiveSandbox;
}

interface Waiting {
  readonly stream: 1 | 2;
  readonly offset: number;
  readonly bytes: Buffer;
}

/**
 * One command's output and end, for one client. Output goes out within the client's credit; what init sent beyond waits here and is not
 * acknowledged to init, whose own credit (256 KiB) bounds it.
 */
export class Subscription {
  readonly #request: Subscribe;
  readonly #sink: SubscriptionSink;
  readonly #waiting: Waiting[] = [];
  readonly #offsets: { 1: number; 2: number };
  #credit: number;
  #channel: ReturnType<LiveSandbox["commands"]["follow"]> | undefined;
  #drained: PromiseWithResolvers<void> | undefined;
  readonly #closed = Promise.withResolvers<undefined>();
  #isClosed = false;

  constructor(request: Subscribe, source: SubscriptionSource, sink: SubscriptionSink) {
    this.#request = request;
    this.#sink = sink;
    this.#credit = request.credit;
    this.#offsets = { 1: request.stdoutOffset, 2: request.stderrOffset };
    void this.#run(source);
  }

  /** The client can take that many more bytes; credit beyond the bound of the contract is not kept. */
  credit(bytes: number): void {
    this.#credit = Math.min(this.#credit + bytes, creditBytesMax);
    this.#flush();
  }

  close(): void {
    this.#isClosed = true;
    this.#channel?.detach();
    this.#waiting.length = 0;
    this.#drained?.resolve();
    this.#closed.resolve(undefined);
  }

  async #run(source: SubscriptionSource): Promise<void> {
    const { subscription, commandId } = this.#request;
    try {
      const outcome = source.recorded(commandId) ?? (await this.#untilEnd(source.live()));
      if (outcome !== undefined && !this.#isClosed) this.#sink.send({ type: "ended", subscription, outcome });
    } catch (error) {
      const { code, message } = asPlatformError(error);
      if (!this.#isClosed) this.#sink.send({ type: "failed", subscription, code, message });
    }
    this.#isClosed = true;
    this.#sink.over();
  }

  /** The outcome, once all output has gone out; undefined when the client was faster to close. */
  async #untilEnd(sandbox: LiveSandbox): Promise<Outcome | undefined> {
    // An attached stream keeps the sandbox from idling.
    using _busy = sandbox.activity.hold();
    if (this.#request.output) await this.#follow(sandbox);
    return await Promise.race([sandbox.commands.outcome(this.#request.commandId), this.#closed.promise]);
  }

  /** Resolves when all output has gone out. */
  async #follow(sandbox: LiveSandbox): Promise<void> {
    const { commandId, stdoutOffset, stderrOffset } = this.#request;
    this.#channel = sandbox.commands.follow(
      { commandId, stdoutOffset, stderrOffset },
      {
        output: (stream, bytes) => this.#take(stream, bytes),
        gap: (stream, bytes) => {
          this.#offsets[stream] += bytes;
        },
      },
    );
    // Lost or expired output is missing; the end is told all the same.
    await this.#channel.outcome.catch(() => undefined);
    if (this.#waiting.length === 0 || this.#isClosed) return;
    this.#drained = Promise.withResolvers<void>();
    await this.#drained.promise;
  }

  #take(stream: 1 | 2, bytes: Buffer): void {
    this.#waiting.push({ stream, offset: this.#offsets[stream], bytes });
    this.#offsets[stream] += bytes.length;
    this.#flush();
    // The received bytes are a view of a buffer that is used again: what goes out now needs no copy, what waits does.
    const left = this.#waiting.pop();
    if (left !== undefined) this.#waiting.push({ ...left, bytes: Buffer.from(left.bytes) });
  }

  #flush(): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const length = Math.min(next.bytes.length, this.#credit, outputChunkBytesMax);
      if (length === 0) {
        this.#waiting.unshift(next);
        return;
      }
      const { stream, offset, bytes } = next;
      this.#credit -= length;
      const { subscription } = this.#request;
      this.#sink.send(
        encodeOutputChunk({ subscription, stream, last: false, offset, bytes: bytes.subarray(0, length) }),
      );
      this.#channel?.consumed(length);
      if (length < bytes.length)
        this.#waiting.unshift({ stream, offset: offset + length, bytes: bytes.subarray(length) });
    }
    this.#drained?.resolve();
  }
}
