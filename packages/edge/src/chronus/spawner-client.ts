import { type ChronusConnection, connectChronus } from "./connection.ts";
import { WireError } from "./frames.ts";
import {
  type CreateAnswer,
  type InitEnded,
  parseCreateAnswer,
  parseInitEnded,
  parseLayers,
  parseMountAnswer,
} from "./operations.ts";

/** Operation `create` of PROTOCOL.md, section 5. All paths are absolute paths of the host. */
export interface SpawnSandbox {
  readonly sandboxId: string;
  readonly hostname: string;
  /** Lowest first, 1 to 100. */
  readonly layers: readonly string[];
  readonly upperPath: string;
  readonly workPath: string;
  readonly socketPath: string;
  readonly outputPath: string;
  readonly idBase: number;
  readonly idCount: number;
  readonly shmBytes: number;
  readonly openFilesMax: number;
  readonly ptysMax: number;
  readonly inotifyInstancesMax: number;
  readonly cgroups: {
    readonly procs: readonly string[];
    readonly commands: string;
    readonly oomFile: string | null;
  };
  readonly services: readonly { readonly name: string; readonly port: number }[];
}

export interface SpawnerHandlers {
  readonly initEnded: (event: InitEnded) => void;
  readonly closed: (reason: string) => void;
}

/** One connection to the node's spawner. Operations reject with OperationError, or WireError when the connection is lost. */
export class SpawnerClient {
  readonly #connection: ChronusConnection;

  private constructor(connection: ChronusConnection) {
    this.#connection = connection;
  }

  static async connect(
    socketPath: string,
    handlers: SpawnerHandlers,
    signal: AbortSignal,
  ): Promise<SpawnerClient> {
    const connection: ChronusConnection = await connectChronus(
      socketPath,
      {
        event: (event) => {
          if (event["event"] !== "init_ended") throw new WireError("An event of the spawner is unknown");
          handlers.initEnded(parseInitEnded(event));
        },
        closed: handlers.closed,
      },
      signal,
    );
    if (connection.peer.role === "spawner") return new SpawnerClient(connection);
    connection.close("the peer is not a spawner");
    throw new WireError("The peer is not a spawner");
  }

  get connection(): ChronusConnection {
    return this.#connection;
  }

  /** Resolves once init listens on its socket. */
  async create(request: SpawnSandbox, signal: AbortSignal): Promise<CreateAnswer> {
    return parseCreateAnswer(await this.#connection.call({ op: "create", ...request }, signal));
  }

  /** False when the layer was mounted already. */
  async mountLayer(layerId: string, metaPath: string, dataPath: string | null): Promise<boolean> {
    const answer = await this.#connection.call({ op: "mount_layer", layerId, metaPath, dataPath });
    return parseMountAnswer(answer).mounted;
  }

  async unmountLayer(layerId: string): Promise<void> {
    await this.#connection.call({ op: "unmount_layer", layerId });
  }

  async listLayers(): Promise<readonly string[]> {
    return parseLayers(await this.#connection.call({ op: "list_layers" })).layers;
  }

  /** SIGKILL to an init, if that process is still the same. */
  async kill(pid: number, startTime: number): Promise<void> {
    await this.#connection.call({ op: "kill", pid, startTime });
  }

  /** Ends the spawner; sandboxes live on. `release` gives its pinned namespaces back too. */
  async shutdown(release: boolean): Promise<void> {
    await this.#connection.call({ op: "shutdown", release });
  }

  close(): void {
    this.#connection.close("the edge closed the connection");
  }
}
