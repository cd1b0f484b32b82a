import type { LayerManifest, SandboxId } from "@dsec/contracts";
import { InitClient, type InitHandlers } from "../../chronus/init-client.ts";
import type { CreateAnswer } from "../../chronus/operations.ts";
import type { SpawnSandbox } from "../../chronus/spawner-client.ts";
import type { CgroupLimits, Cgroups, SandboxCgroups } from "../../host/cgroups.ts";
import type { IdBlock } from "../../host/id-blocks.ts";
import type { LayerReference } from "../../layers/mounts.ts";
import type { SandboxPaths } from "./directories.ts";

/** What a container is made of. The parts touch the host; tests give them with faults. */
export interface ContainerHost {
  readonly ids: Pick<IdBlock, "take" | "adopt" | "giveBack">;
  readonly layers: { acquire(layers: readonly LayerManifest[]): Promise<LayerReference> };
  readonly directories: {
    paths(id: SandboxId): SandboxPaths;
    create(id: SandboxId, idBase: number): SandboxPaths;
    remove(id: SandboxId): Promise<void>;
    list(): SandboxId[];
  };
  readonly cgroups: Pick<Cgroups, "create" | "adopt" | "list">;
  readonly spawner: {
    create(request: SpawnSandbox, signal: AbortSignal): Promise<CreateAnswer>;
    kill(pid: number, startTime: number, signal: AbortSignal): Promise<void>;
  };
  readonly processes: {
    isSame(pid: number, startTime: number): boolean;
    whenGone(pid: number, startTime: number, signal: AbortSignal): Promise<void>;
  };
}

export interface ContainerRequest {
  readonly id: SandboxId;
  /** Lowest first. */
  readonly layers: readonly LayerManifest[];
  readonly limits: CgroupLimits;
}

const idCount = 65_536;
const mib = 1024 * 1024;
const shmMibMax = 64;
const openFilesMax = 16_384;
const ptysMax = 64;
const inotifyInstancesMax = 128;
const destroyTimeoutMs = 60_000;

/** A sandbox's processes, groups, files, layers and user ids: held together, given back together. */
export class Container {
  readonly id: SandboxId;
  readonly pid: number;
  readonly startTime: number;
  readonly idBase: number;
  readonly #host: ContainerHost;
  readonly #groups: SandboxCgroups;
  readonly #held: AsyncDisposableStack;

  constructor(
    host: ContainerHost,
    parts: { readonly id: SandboxId; readonly init: CreateAnswer; readonly idBase: number },
    groups: SandboxCgroups,
    /** User ids and layers: given back last, once nothing of the sandbox is left. */
    held: AsyncDisposableStack,
  ) {
    this.id = parts.id;
    this.pid = parts.init.pid;
    this.startTime = parts.init.startTime;
    this.idBase = parts.idBase;
    this.#host = host;
    this.#groups = groups;
    this.#held = held;
  }

  /** A connection to init; the one before it is closed by init. */
  async connect(handlers: InitHandlers, signal: AbortSignal): Promise<InitClient> {
    const socketPath = this.#host.directories.paths(this.id).socket;
    return InitClient.connect({ socketPath, sandboxId: this.id }, handlers, signal);
  }

  isAlive(): boolean {
    return this.#host.processes.isSame(this.pid, this.startTime);
  }

  oomKills(): number {
    return this.#groups.oomKills();
  }

  memoryBytes(): number {
    return this.#groups.memoryBytes();
  }

  /**
   * Ends every process, waits until they are gone, gives everything back. When the processes do not go, everything else stays
   * and it throws; it may be called again then.
   */
  async destroy(): Promise<void> {
    const signal = AbortSignal.timeout(destroyTimeoutMs);
    await endProcesses(this.#host, this.#groups, this, signal);
    await this.#groups.remove(signal);
    await this.#host.directories.remove(this.id);
    await this.#held.disposeAsync();
  }
}

/**
 * Creates in steps; whatever step fails, everything taken is given back in reverse. When the processes cannot be shown to be gone,
 * files and user ids stay, since somebody may still use them, and the error is LeftBehindError.
 */
export async function createContainer(
  host: ContainerHost,
  request: ContainerRequest,
  signal: AbortSignal,
): Promise<Container> {
  const { id } = request;
  await using held = new AsyncDisposableStack();
  const { base: idBase } = host.ids.take();
  let isEmpty = true;
  held.defer(() => {
    if (isEmpty) host.ids.giveBack(idBase);
  });
  const layers = held.use(await host.layers.acquire(request.layers));
  await using files = new AsyncDisposableStack();
  files.defer(async () => {
    if (isEmpty) await host.directories.remove(id);
  });
  const paths = host.directories.create(id, idBase);
  try {
    const groups = host.cgroups.create(id, request.limits);
    const parts = { ...request, idBase, paths, layerIds: layers.layerIds };
    const init = await host.spawner.create(spawnRequest(parts, groups), signal);
    files.move();
    return new Container(host, { id, init, idBase }, groups, held.move());
  } catch (cause) {
    isEmpty = false;
    await endUnknown(host, id, cause, idBase);
    isEmpty = true;
    throw cause;
  }
}

/** A creation failed and its processes could not be ended: `removeTraces` is to be tried again, then the ids are free. */
export class LeftBehindError extends Error {
  override readonly name = "LeftBehindError";
  readonly idBase: number;

  constructor(idBase: number, cause: unknown) {
    super("A failed creation left something behind", { cause });
    this.idBase = idBase;
  }
}

async function endUnknown(host: ContainerHost, id: SandboxId, cause: unknown, idBase: number): Promise<void> {
  try {
    await endWithoutPid(host, id, AbortSignal.timeout(destroyTimeoutMs));
  } catch (error) {
    throw new LeftBehindError(idBase, new SuppressedError(error, cause));
  }
}

/** Takes over a container that an earlier edge made. Its layers are mounted already; they are counted again. */
export async function adoptContainer(
  host: ContainerHost,
  request: ContainerRequest,
  known: { readonly pid: number; readonly startTime: number; readonly idBase: number },
): Promise<Container> {
  await using held = new AsyncDisposableStack();
  host.ids.adopt(known.idBase);
  held.defer(() => host.ids.giveBack(known.idBase));
  held.use(await host.layers.acquire(request.layers));
  const groups = host.cgroups.adopt(request.id);
  return new Container(host, { id: request.id, init: known, idBase: known.idBase }, groups, held.move());
}

/**
 * Removes what is left of a sandbox that nobody holds: after a crash, or when its creation ended in the dark. `init` when its
 * process is known; else it is found at its socket.
 */
export async function removeTraces(
  host: ContainerHost,
  id: SandboxId,
  init: CreateAnswer | undefined,
): Promise<void> {
  const signal = AbortSignal.timeout(destroyTimeoutMs);
  if (init !== undefined) await endProcesses(host, host.cgroups.adopt(id), init, signal);
  await endWithoutPid(host, id, signal);
  await host.directories.remove(id);
}

/** The spawner may have been lost after it had made the sandbox: its init is found at its socket then. */
async function endWithoutPid(host: ContainerHost, id: SandboxId, signal: AbortSignal): Promise<void> {
  const groups = host.cgroups.adopt(id);
  groups.killAll();
  await shutDownAtSocket(host, id, signal);
  await groups.remove(signal);
}

async function endProcesses(
  host: ContainerHost,
  groups: SandboxCgroups,
  init: CreateAnswer,
  signal: AbortSignal,
): Promise<void> {
  groups.killAll();
  if (host.processes.isSame(init.pid, init.startTime)) {
    await host.spawner.kill(init.pid, init.startTime, signal);
    await host.processes.whenGone(init.pid, init.startTime, signal);
  }
}

function spawnRequest(
  request: ContainerRequest & {
    readonly idBase: number;
    readonly paths: SandboxPaths;
    readonly layerIds: readonly string[];
  },
  groups: SandboxCgroups,
): SpawnSandbox {
  const { id, paths } = request;
  return {
    sandboxId: id,
    hostname: id,
    layers: request.layerIds,
    upperPath: paths.upper,
    workPath: paths.work,
    socketPath: paths.socket,
    outputPath: paths.output,
    idBase: request.idBase,
    idCount,
    shmBytes: Math.min(shmMibMax, Math.floor(request.limits.memoryMib / 2)) * mib,
    openFilesMax,
    ptysMax,
    inotifyInstancesMax,
    cgroups: {
      procs: groups.runnerProcs,
      commands: groups.commandsDirectory,
      oomFile: groups.oomFile,
    },
    services: [],
  };
}

/** Ends an init that listens at the sandbox's socket, if one does. */
async function shutDownAtSocket(host: ContainerHost, id: SandboxId, signal: AbortSignal): Promise<void> {
  const socketPath = host.directories.paths(id).socket;
  const gone = Promise.withResolvers<void>();
  try {
    const handlers = { commandEnded: () => undefined, closed: () => gone.resolve() };
    const client = await InitClient.connect({ socketPath, sandboxId: id }, handlers, signal);
    await client.shutdown();
    await gone.promise;
  } catch {
    // Nobody listens, or init ended before it answered: either way there is none any more.
  }
}
