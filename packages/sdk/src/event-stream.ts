import {
  creditBytesDefault,
  decodeOutputChunk,
  type Outcome,
  type OutputChunk,
  type StreamEvent,
} from "@dsec/contracts";
import { DsecError, errorOfBody } from "./errors.ts";
import { EventSocket, type SocketConstructor } from "./event-socket.ts";
import { delayBeforeRetryMs, isRetryable, pause } from "./retry.ts";

/** What a subscription wants to hear of one command. */
export interface Listener {
  readonly sandboxId: string;
  readonly commandId: string;
  /** False: only the end is wanted. */
  readonly output: boolean;
  onOutput(stream: 1 | 2, bytes: Uint8Array, missing: number): void;
  onStreamEnd(stream: 1 | 2): void;
  onEnded(outcome: Outcome): void;
  onFailed(error: DsecError): void;
  /** Bytes that came and were not granted again. */
  heldBytes(): number;
}

export interface Target {
  readonly url: string;
  readonly key: string;
  failOver(): void;
}

interface Subscription {
  readonly id: number;
  readonly listener: Listener;
  readonly offsets: [stdout: number, stderr: number];
  /** Consumed and not granted yet. */
  owed: number;
  failures: number;
}

const reconnectMsMax = 60_000;
const idleMs = 1_000;
const grantBytesMin = creditBytesDefault / 4;

/**
 * All ends and output of a client's commands over one WebSocket, made when first needed and closed after a second without
 * subscriptions. A lost connection is made again and every subscription goes on at the byte where it stood; what cannot be
 * connected for a minute fails as `unavailable`.
 */
export class EventStream {
  readonly #target: Target;
  readonly #socketConstructor: SocketConstructor | undefined;
  readonly #subscriptions = new Map<number, Subscription>();
  #socket: EventSocket | undefined;
  #connecting: Promise<void> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #nextId = 1;

  constructor(target: Target, constructor: SocketConstructor | undefined) {
    this.#target = target;
    this.#socketConstructor = constructor;
  }

  /** Starts to listen; the result ends it. `grant` returns credit for output that was consumed. */
  subscribe(listener: Listener): { grant(bytes: number): void; end(): void } {
    const id = this.#nextId;
    this.#nextId = (this.#nextId % 0xffff_ffff) + 1;
    const subscription: Subscription = { id, listener, offsets: [0, 0], owed: 0, failures: 0 };
    this.#subscriptions.set(id, subscription);
    clearTimeout(this.#idle);
    if (this.#socket !== undefined && this.#connecting === undefined) this.#open(this.#socket, subscription);
    else this.#connect();
    return {
      grant: (bytes) => this.#grant(subscription, bytes),
      end: () => {
        if (this.#remove(id)) this.#socket?.send({ type: "unsubscribe", subscription: id });
      },
    };
  }

  /** Fails what is still subscribed and closes the connection. */
  close(): void {
    this.#failAll(new DsecError("cancelled", "Cannot follow command: the client was closed"));
    clearTimeout(this.#idle);
    this.#socket?.close();
  }

  #connect(): void {
    this.#connecting ??= this.#connectWithRetries().finally(() => {
      this.#connecting = undefined;
      if (this.#socket === undefined && this.#subscriptions.size > 0) this.#connect();
    });
  }

  async #connectWithRetries(): Promise<void> {
    const constructor = this.#socketConstructor;
    if (constructor === undefined) {
      this.#failAll(
        new DsecError("unsupported_capability", "Cannot follow command: this runtime has no WebSocket"),
      );
      return;
    }
    const giveUpAtMs = performance.now() + reconnectMsMax;
    for (let number = 1; this.#subscriptions.size > 0; number += 1) {
      const { url, key } = this.#target;
      const socket: EventSocket = new EventSocket(
        { url, key, constructor },
        {
          onText: (text) => this.#onText(text),
          onBytes: (bytes) => this.#onBytes(bytes),
          onClosed: () => this.#onClosed(socket),
        },
      );
      if (await socket.opened) {
        this.#socket = socket;
        for (const subscription of this.#subscriptions.values()) this.#open(socket, subscription);
        this.#closeWhenIdle();
        return;
      }
      this.#target.failOver();
      if (performance.now() > giveUpAtMs) {
        this.#failAll(new DsecError("unavailable", `Cannot follow command: no event stream at ${url}`));
      } else await pause(delayBeforeRetryMs(number, undefined), undefined);
    }
  }

  #open(socket: EventSocket, subscription: Subscription): void {
    const { id, listener, offsets } = subscription;
    subscription.owed = 0;
    socket.send({
      type: "subscribe",
      subscription: id,
      sandboxId: listener.sandboxId,
      commandId: listener.commandId,
      output: listener.output,
      stdoutOffset: offsets[0],
      stderrOffset: offsets[1],
      credit: Math.max(0, creditBytesDefault - listener.heldBytes()),
    });
  }

  #grant(subscription: Subscription, bytes: number): void {
    subscription.owed += bytes;
    if (subscription.owed < grantBytesMin || !this.#subscriptions.has(subscription.id)) return;
    this.#socket?.send({ type: "credit", subscription: subscription.id, bytes: subscription.owed });
    subscription.owed = 0;
  }

  #onClosed(socket: EventSocket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    if (this.#subscriptions.size > 0) this.#connect();
  }

  #onBytes(message: Uint8Array): void {
    const chunk = decodeOutputChunk(message);
    const subscription = chunk === undefined ? undefined : this.#subscriptions.get(chunk.subscription);
    if (chunk !== undefined && subscription !== undefined) deliver(subscription, chunk);
  }

  #onText(text: string): void {
    const event = JSON.parse(text) as StreamEvent;
    if (event.type === "keepalive") return;
    const subscription = this.#subscriptions.get(event.subscription);
    if (subscription === undefined) return;
    if (event.type === "ended") {
      this.#remove(subscription.id);
      subscription.listener.onEnded(event.outcome);
      return;
    }
    const error =
      errorOfBody({ code: event.code, message: event.message }) ?? new DsecError("internal", event.message);
    if (isRetryable(error) && subscription.failures < 20) void this.#openLater(subscription);
    else {
      this.#remove(subscription.id);
      subscription.listener.onFailed(error);
    }
  }

  /** The node of the command may be back soon: an edge that restarts keeps its sandboxes. */
  async #openLater(subscription: Subscription): Promise<void> {
    subscription.failures += 1;
    await pause(delayBeforeRetryMs(subscription.failures, undefined), undefined);
    if (this.#socket !== undefined && this.#subscriptions.has(subscription.id)) {
      this.#open(this.#socket, subscription);
    }
  }

  #remove(id: number): boolean {
    const wasThere = this.#subscriptions.delete(id);
    if (wasThere) this.#closeWhenIdle();
    return wasThere;
  }

  #closeWhenIdle(): void {
    if (this.#subscriptions.size > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#socket?.close(), idleMs);
  }

  #failAll(error: DsecError): void {
    const all = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    for (const { listener } of all) listener.onFailed(error);
  }
}

/** Passes new bytes on. What came before a reconnection is cut off; a jump counts as missing. */
function deliver(subscription: Subscription, chunk: OutputChunk): void {
  const index = chunk.stream === 1 ? 0 : 1;
  const expected = subscription.offsets[index];
  const end = chunk.offset + chunk.bytes.length;
  if (end > expected) {
    const fresh = chunk.offset < expected ? chunk.bytes.subarray(expected - chunk.offset) : chunk.bytes;
    subscription.offsets[index] = end;
    subscription.failures = 0;
    subscription.listener.onOutput(chunk.stream, fresh, Math.max(0, chunk.offset - expected));
  }
  if (chunk.last) subscription.listener.onStreamEnd(chunk.stream);
}
