import { routes } from "@dsec/contracts";

/** The part of the standard WebSocket that the event stream uses. */
export interface SocketLike {
  binaryType: string;
  send(data: string): void;
  close(code?: number): void;
  addEventListener(type: "open" | "close" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

export type SocketConstructor = new (url: string, options: never) => SocketLike;

export interface SocketHandlers {
  onText(text: string): void;
  onBytes(bytes: Uint8Array): void;
  /** Once, when the connection is gone or could not be made. */
  onClosed(): void;
}

/** The platform sends something at least every 20 s. */
const silenceMsMax = 60_000;
const connectMsMax = 10_000;

/** One connection of the event stream. A silent one is given up. */
export class EventSocket {
  readonly #socket: SocketLike;
  readonly #opened: Promise<boolean>;
  #lastHeardMs = performance.now();
  #watch: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;

  constructor(
    target: { readonly url: string; readonly key: string; readonly constructor: SocketConstructor },
    handlers: SocketHandlers,
  ) {
    const url = `${target.url.replace(/^http/, "ws")}${routes.eventStream.path}`;
    this.#socket = new target.constructor(url, socketOptions(target.key) as never);
    this.#socket.binaryType = "arraybuffer";
    this.#opened = new Promise((resolve) => {
      const giveUp = setTimeout(close, connectMsMax, this);
      const settle = (isOpen: boolean): void => {
        clearTimeout(giveUp);
        resolve(isOpen);
      };
      function close(socket: EventSocket): void {
        socket.close();
      }
      this.#socket.addEventListener("open", () => settle(true));
      this.#socket.addEventListener("error", () => this.#end(handlers, settle));
      this.#socket.addEventListener("close", () => this.#end(handlers, settle));
    });
    this.#socket.addEventListener("message", ({ data }) => {
      this.#lastHeardMs = performance.now();
      if (typeof data === "string") handlers.onText(data);
      else if (data instanceof ArrayBuffer) handlers.onBytes(new Uint8Array(data));
    });
    this.#watch = setInterval(() => {
      if (performance.now() - this.#lastHeardMs > silenceMsMax) this.close();
    }, silenceMsMax / 4);
  }

  /** Whether the connection was made; false after `onClosed`. */
  get opened(): Promise<boolean> {
    return this.#opened;
  }

  send(message: object): void {
    if (!this.#isClosed) this.#socket.send(JSON.stringify(message));
  }

  close(): void {
    this.#socket.close(1000);
  }

  #end(handlers: SocketHandlers, settle: (isOpen: boolean) => void): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#watch);
    this.#watch = undefined;
    settle(false);
    handlers.onClosed();
  }
}

/** Node.js can send headers; elsewhere the key travels as a subprotocol, which browsers can set. */
function socketOptions(key: string): unknown {
  const isNode =
    (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;
  const protocols = ["dsec.v1", `dsec.key.${key}`];
  return isNode ? { protocols: ["dsec.v1"], headers: { authorization: `Bearer ${key}` } } : protocols;
}
