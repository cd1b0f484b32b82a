import { type Capability, type CapabilityList, routes } from "@dsec/contracts";
import { Keys, Layers, Nodes, Projects } from "./administration.ts";
import type { SocketConstructor } from "./event-socket.ts";
import { EventStream } from "./event-stream.ts";
import { sendByFetch } from "./http-fetch.ts";
import { sendByNode } from "./http-node.ts";
import { Sandboxes } from "./sandboxes.ts";
import { findSettings } from "./settings.ts";
import { type CallOptions, Transport } from "./transport.ts";

export interface DsecClientOptions {
  /** Several are tried in turn: the next one when one does not answer. */
  readonly url?: string | readonly string[];
  readonly key?: string;
  /** Bound of a call that has none of its own; 60,000 when not given. */
  readonly timeoutMs?: number;
  /** In the place of the runtime's own HTTP client. */
  readonly fetch?: typeof fetch;
  /** For runtimes without a global WebSocket; needed only by streamed commands. */
  readonly WebSocket?: SocketConstructor;
}

const timeoutMsDefault = 60_000;

/**
 * The platform for one key. Holds one connection for events, made on demand and closed when idle; `close()` or
 * `await using` ends it at once.
 */
export class DsecClient implements AsyncDisposable {
  readonly sandboxes: Sandboxes;
  readonly projects: Projects;
  readonly keys: Keys;
  readonly nodes: Nodes;
  readonly layers: Layers;
  readonly #transport: Transport;
  readonly #events: EventStream;

  /** Throws `unauthenticated` when neither options, environment nor `dsec up` say where the platform is. */
  constructor(options: DsecClientOptions = {}) {
    const transport = new Transport(findSettings(options), {
      send: (options.fetch === undefined ? sendByNode() : undefined) ?? sendByFetch(options.fetch ?? fetch),
      timeoutMs: options.timeoutMs ?? timeoutMsDefault,
    });
    const { WebSocket: own } = globalThis as { WebSocket?: unknown };
    const events = new EventStream(transport, options.WebSocket ?? (own as SocketConstructor | undefined));
    this.#transport = transport;
    this.#events = events;
    this.sandboxes = new Sandboxes({ transport, events });
    this.projects = new Projects(transport);
    this.keys = new Keys(transport);
    this.nodes = new Nodes(transport);
    this.layers = new Layers(transport);
  }

  /** What this fleet can do, and why it cannot do the rest. */
  async capabilities(options: CallOptions = {}): Promise<readonly Capability[]> {
    const call = { ...options, route: routes.capabilities, what: "get capabilities", repeatable: true };
    return (await this.#transport.json<CapabilityList>(call)).items;
  }

  /** Ends the event connection; commands and sandboxes go on. */
  close(): void {
    this.#events.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
