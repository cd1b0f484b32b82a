import type { Log } from "@dsec/kit";
import { type Background, wait } from "@dsec/kit";
import type { HealthMonitor } from "./health.ts";
import type { CreateAnswer, InitEnded } from "./operations.ts";
import { SpawnerClient, type SpawnSandbox } from "./spawner-client.ts";

const connectTimeoutMs = 5_000;
const retryMsMax = 1_000;
const openAttemptsMax = 4;

export interface SpawnerLinkOptions {
  readonly socketPath: string;
  /**
   * Makes sure that a spawner listens: starts one when there is none. `attempt` counts from 1 since the last connection; from the
   * third on, a spawner that runs but does not answer is to be replaced.
   */
  readonly ensure: (attempt: number, signal: AbortSignal) => Promise<void>;
  readonly initEnded: (event: InitEnded) => void;
  /** A new spawner was connected after an earlier one was lost. */
  readonly replaced: () => void;
  readonly background: Background;
  readonly health: HealthMonitor;
  readonly log: Log;
}

/** The node's spawner, whichever process it is: restarted when it is gone, connected to again. Sandboxes live on meanwhile. */
export class SpawnerLink {
  readonly #options: SpawnerLinkOptions;
  #current = Promise.withResolvers<SpawnerClient>();
  #client: SpawnerClient | undefined;
  #ending = false;

  constructor(options: SpawnerLinkOptions) {
    this.#options = options;
  }

  /** Connects for the first time; rejects when no spawner can be started. */
  async open(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#options.ensure(attempt, signal);
        this.#adopt(await this.#connect(signal));
        return;
      } catch (error) {
        if (attempt >= openAttemptsMax) throw error;
        this.#options.log.warn({ err: error, attempt }, "cannot connect the spawner");
      }
    }
  }

  /** See SpawnerClient. Rejects with WireError when the spawner is lost meanwhile; whether something was made is then unknown. */
  async create(request: SpawnSandbox, signal: AbortSignal): Promise<CreateAnswer> {
    return (await this.#get(signal)).create(request, signal);
  }

  async kill(pid: number, startTime: number, signal: AbortSignal): Promise<void> {
    await (await this.#get(signal)).kill(pid, startTime);
  }

  async mountLayer(layerId: string, metaPath: string, dataPath: string | null): Promise<void> {
    await (await this.#get()).mountLayer(layerId, metaPath, dataPath);
  }

  async unmountLayer(layerId: string): Promise<void> {
    await (await this.#get()).unmountLayer(layerId);
  }

  async listLayers(): Promise<readonly string[]> {
    return (await this.#get()).listLayers();
  }

  /** Ends the spawner for good, with its pinned namespaces. */
  async shutdown(): Promise<void> {
    this.#ending = true;
    const client = await this.#get();
    await client.shutdown(true);
    client.close();
  }

  /** Leaves the spawner running. */
  close(): void {
    this.#ending = true;
    this.#client?.close();
  }

  async #get(signal: AbortSignal = AbortSignal.timeout(2 * connectTimeoutMs)): Promise<SpawnerClient> {
    if (this.#client !== undefined) return this.#client;
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      signal.throwIfAborted();
      return await Promise.race([this.#current.promise, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  async #connect(signal: AbortSignal): Promise<SpawnerClient> {
    return SpawnerClient.connect(
      this.#options.socketPath,
      { initEnded: this.#options.initEnded, closed: (reason) => this.#onClosed(reason) },
      AbortSignal.any([signal, AbortSignal.timeout(connectTimeoutMs)]),
    );
  }

  #adopt(client: SpawnerClient): void {
    this.#client = client;
    this.#current.resolve(client);
    this.#options.health.watch(client.connection, () =>
      client.connection.close("the spawner does not answer"),
    );
  }

  #onClosed(reason: string): void {
    this.#client = undefined;
    this.#current = Promise.withResolvers<SpawnerClient>();
    if (this.#ending) return;
    this.#options.log.warn({ reason }, "spawner lost");
    this.#options.background.run("reconnect the spawner", async (signal) => this.#reconnect(signal));
  }

  async #reconnect(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; !signal.aborted && !this.#ending; attempt++) {
      try {
        await this.#options.ensure(attempt, signal);
        this.#adopt(await this.#connect(signal));
        this.#options.log.info({ attempt }, "spawner connected again");
        this.#options.replaced();
        return;
      } catch (error) {
        this.#options.log.warn({ err: error, attempt }, "cannot connect the spawner");
        await wait(Math.min(20 * 2 ** attempt, retryMsMax), signal);
      }
    }
  }
}
