import { type Command as CommandInfo, type Outcome, routes } from "@dsec/contracts";
import { collect } from "./bytes.ts";
import { cancelled } from "./errors.ts";
import type { EventStream } from "./event-stream.ts";
import { OutputQueue } from "./output-queue.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** One output stream of a command: its bytes from the first on, whenever the reading starts. Can be read once. */
export interface CommandOutput extends AsyncIterable<Uint8Array> {
  /** All of it as text; for output of known size. */
  text(): Promise<string>;
  /** Bytes that never came here: beyond the platform's caps, or pushed out while this stream was not read. */
  readonly droppedBytes: number;
}

/** A command that was started. It goes on by itself: nothing here needs to be disposed. */
export class Command {
  readonly id: string;
  readonly sandboxId: string;
  readonly actionId: string;
  /** True when the start attached to an earlier command of the same actionId. */
  readonly replay: boolean;
  readonly startedAtMs: number;
  readonly stdout: CommandOutput;
  readonly stderr: CommandOutput;
  readonly #transport: Transport;
  readonly #events: EventStream;
  #outcome: Promise<Outcome> | undefined;

  constructor(sandboxId: string, info: CommandInfo, link: { transport: Transport; events: EventStream }) {
    this.id = info.commandId;
    this.sandboxId = sandboxId;
    this.actionId = info.actionId;
    this.replay = info.replay;
    this.startedAtMs = info.startedAtMs;
    this.#transport = link.transport;
    this.#events = link.events;
    const pair = new OutputPair(sandboxId, info.commandId, link.events);
    this.stdout = pair.output(1);
    this.stderr = pair.output(2);
    if (info.outcome !== null) this.#outcome = Promise.resolve(info.outcome);
  }

  /**
   * Waits for the end. An aborted signal ends the waiting, not the command. Rejects with a DsecError when the end cannot be known.
   */
  async outcome(options: { readonly signal?: AbortSignal } = {}): Promise<Outcome> {
    this.#outcome ??= this.#awaitEnd();
    const { signal } = options;
    if (signal === undefined) return await this.#outcome;
    if (signal.aborted) throw cancelled("await the end of a command", signal);
    let onAbort = (): void => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(cancelled("await the end of a command", signal));
      signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return await Promise.race([this.#outcome, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Sends a signal to the command's first process, or with `tree` to all that it left. */
  async signal(signal: number, options: CallOptions & { readonly tree?: boolean } = {}): Promise<void> {
    const { tree = false, ...call } = options;
    await this.#transport.empty({
      ...call,
      route: routes.signalCommand,
      what: "signal command",
      parameters: { sandbox: this.sandboxId, command: this.id },
      json: { signal, tree },
      repeatable: signal === 9,
    });
  }

  /** Kills the command with everything that it left running. */
  async kill(options: CallOptions = {}): Promise<void> {
    await this.signal(9, { ...options, tree: true });
  }

  async #awaitEnd(): Promise<Outcome> {
    return await new Promise<Outcome>((resolve, reject) => {
      this.#events.subscribe({
        sandboxId: this.sandboxId,
        commandId: this.id,
        output: false,
        onOutput() {},
        onStreamEnd() {},
        onEnded: resolve,
        onFailed: reject,
        heldBytes: () => 0,
      });
    });
  }
}

/** Both streams of a command under one subscription, made when the first of them is read. */
class OutputPair {
  readonly #sandboxId: string;
  readonly #commandId: string;
  readonly #events: EventStream;
  readonly #queues: readonly [OutputQueue, OutputQueue];
  #link: { grant(bytes: number): void; end(): void } | undefined;

  constructor(sandboxId: string, commandId: string, events: EventStream) {
    this.#sandboxId = sandboxId;
    this.#commandId = commandId;
    this.#events = events;
    const acknowledge = (bytes: number): void => this.#link?.grant(bytes);
    this.#queues = [new OutputQueue(acknowledge), new OutputQueue(acknowledge)];
  }

  output(stream: 1 | 2): CommandOutput {
    const queue = this.#queue(stream);
    const read = (): AsyncIterator<Uint8Array> => {
      const iterator = queue.read();
      this.#start();
      return iterator;
    };
    return {
      [Symbol.asyncIterator]: read,
      text: async () => new TextDecoder().decode(await collect({ [Symbol.asyncIterator]: read })),
      get droppedBytes() {
        return queue.droppedBytes;
      },
    };
  }

  #queue(stream: 1 | 2): OutputQueue {
    return this.#queues[stream === 1 ? 0 : 1];
  }

  #start(): void {
    this.#link ??= this.#events.subscribe({
      sandboxId: this.#sandboxId,
      commandId: this.#commandId,
      output: true,
      onOutput: (stream, bytes, missing) => {
        const queue = this.#queue(stream);
        queue.countDropped(missing);
        queue.push(bytes);
      },
      onStreamEnd: (stream) => this.#queue(stream).finish(),
      onEnded: () => this.#finish(),
      onFailed: (error) => this.#finish(error),
      heldBytes: () => this.#queues[0].heldBytes + this.#queues[1].heldBytes,
    });
  }

  #finish(error?: Error): void {
    for (const queue of this.#queues) queue.finish(error);
  }
}
