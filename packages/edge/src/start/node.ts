import { mkdirSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { NodeId } from "@dsec/contracts";
import { Background, type Log, wait } from "@dsec/kit";
import { ContainerBackend } from "../backends/container/backend.ts";
import { Directories } from "../backends/container/directories.ts";
import { HealthMonitor } from "../chronus/health.ts";
import { SpawnerLink } from "../chronus/spawner-link.ts";
import type { EdgeConfig } from "../config.ts";
import { detectCgroups } from "../host/cgroup-detection.ts";
import type { Cgroups } from "../host/cgroups.ts";
import { spreadSubdirectories } from "../host/ext4.ts";
import { claimIdBlock, type IdBlock } from "../host/id-blocks.ts";
import { listInits } from "../host/inits.ts";
import { readLoad } from "../host/load.ts";
import { raiseNodeLimits } from "../host/node-limits.ts";
import { readIntoPageCache } from "../host/page-cache.ts";
import { isSame, whenGone } from "../host/process-identity.ts";
import { findSpawner, killSpawner, startSpawner } from "../host/spawner-process.ts";
import { ensureDefaultBase } from "../layers/default-base.ts";
import { LayerMounts } from "../layers/mounts.ts";
import { LayerResolver } from "../layers/resolver.ts";
import { LayerStore, type Progress } from "../layers/store.ts";
import { Ledger } from "../ledger/ledger.ts";
import { LoadMonitor } from "../sandbox/admission.ts";
import { ImageFactsReader } from "../sandbox/image-facts.ts";
import { recover } from "../sandbox/recovery.ts";
import { Sandboxes } from "../sandbox/sandboxes.ts";

/** The node's part of an edge: everything but its wires. Disposing it leaves the sandboxes alive for the next edge. */
export interface EdgeNode extends AsyncDisposable {
  readonly sandboxes: Sandboxes;
  readonly layers: LayerResolver;
  /** Ends all sandboxes and the spawner, and removes every trace of the node but its data. Dispose it afterwards. */
  endAll(): Promise<void>;
}

const creationTimeoutMs = 30_000;
const startTimeoutMs = 60_000;
const pruneEveryMs = 60_000;
const orphanDelayMs = 2_000;
const mib = 1024 * 1024;
const idleLayersMax = 64;
/** From this attempt on, a spawner that runs without answering is replaced. */
const replaceFromAttempt = 3;

/** `signal` ends the build of the default base, the one step that takes minutes. */
interface StartOptions {
  readonly log: Log;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

interface NodePlaces {
  readonly data: string;
  readonly run: string;
}

/** Starts or takes over the node; resolves once ledger and host are at one. Whatever fails, sandboxes are left as they are. */
export async function startNode(
  config: EdgeConfig,
  nodeId: NodeId,
  options: StartOptions,
): Promise<EdgeNode> {
  const { log } = options;
  await using held = new AsyncDisposableStack();
  const { places, ids, store, cgroups } = await prepareHost(config, nodeId, options);
  const ledger = held.use(new Ledger(join(places.data, "ledger.sqlite")));
  const background = held.use(new Background(log));
  const health = held.use(new HealthMonitor());
  const link = held.adopt(makeLink(config, places, cgroups, { background, health, log }), (spawner) =>
    spawner.close(),
  );
  await link.spawner.open(AbortSignal.timeout(startTimeoutMs));
  const layers = new LayerResolver(store);
  const mounts = new LayerMounts({
    mounter: link.spawner,
    paths: (id) => store.paths(id),
    idleMountsMax: idleLayersMax,
    mounted: ({ id }) => {
      const bytesMax = config.layerReadAheadMib * mib;
      background.run("read a layer ahead", async (signal) =>
        readIntoPageCache(store.paths(id).data, bytesMax, signal),
      );
    },
  });
  await mounts.recover();
  const processes = { isSame, whenGone };
  const directories = new Directories(places.data, places.run);
  await spreadSubdirectories(directories.root, log);
  const backend = new ContainerBackend({
    host: { ids, layers: mounts, directories, cgroups, spawner: link.spawner, processes },
    listInits: () => listInits(cgroups.agentsProcs(), findSpawner(places.run)?.pid),
    resolve: async (id) => layers.resolve(id),
    background,
    log,
  });
  const images = new ImageFactsReader(ledger);
  const load = new LoadMonitor(() => readLoad(places.data));
  const parts = { ledger, health, background, log, backend, layers, images, load };
  const sandboxes = new Sandboxes({ ...parts, nodeId, admission: config, creationTimeoutMs });
  link.use(sandboxes, backend);
  await recover({ ledger, backend, sandboxes, log }, AbortSignal.timeout(startTimeoutMs));
  background.every("prune the ledger", pruneEveryMs, async (signal) => {
    while (!signal.aborted && (await ledger.prune(Date.now()))) await wait(10, signal);
  });
  const owned = held.move();
  return {
    sandboxes,
    layers,
    endAll: async () => {
      await sandboxes.stopAll();
      await link.spawner.shutdown();
      await endSpawner(places);
      await cgroups.removeNode();
      rmSync(places.run, { recursive: true, force: true });
      ids[Symbol.dispose]();
      removeIfEmpty(join(config.runDir, "id-blocks"), config.runDir);
    },
    [Symbol.asyncDispose]: async () => {
      await sandboxes.release();
      await owned.disposeAsync();
    },
  };
}

async function prepareHost(
  config: EdgeConfig,
  nodeId: NodeId,
  { log, progress, signal }: StartOptions,
): Promise<{ places: NodePlaces; ids: IdBlock; store: LayerStore; cgroups: Cgroups }> {
  const places = { data: join(config.dataDir, "edge", nodeId), run: join(config.runDir, nodeId) };
  for (const path of Object.values(places)) mkdirSync(path, { recursive: true, mode: 0o700 });
  const ids = claimIdBlock(config.runDir, config.dataDir);
  for (const limit of raiseNodeLimits()) log.debug(limit, "node limit");
  const store = await openStore(config, progress, signal);
  const cgroups = detectCgroups(nodeId);
  cgroups.prepareNode();
  return { places, ids, store, cgroups };
}

async function openStore(config: EdgeConfig, progress: Progress, signal: AbortSignal): Promise<LayerStore> {
  const store = new LayerStore(config.layersDir ?? join(config.dataDir, "layers"));
  await store.open();
  if (config.ensureDefaultBase) {
    const buildRoot = join(config.dataDir, "build");
    await ensureDefaultBase({ store, buildRoot }, progress, signal);
  }
  return store;
}

/** The link to the spawner; what it reports reaches the sandboxes once they exist. */
function makeLink(
  config: EdgeConfig,
  places: NodePlaces,
  cgroups: Cgroups,
  parts: { readonly background: Background; readonly health: HealthMonitor; readonly log: Log },
): {
  readonly spawner: SpawnerLink;
  use(sandboxes: Sandboxes, backend: ContainerBackend): void;
  close(): void;
} {
  const users: { sandboxes?: Sandboxes; backend?: ContainerBackend } = {};
  const spawner = new SpawnerLink({
    ...parts,
    socketPath: join(places.run, "spawner.sock"),
    ensure: async (attempt, signal) => {
      const running = findSpawner(places.run);
      if (running !== undefined && attempt < replaceFromAttempt) return;
      if (running !== undefined) await killSpawner(running, signal);
      await startSpawner(
        {
          binary: config.chronusPath ?? builtChronus,
          runDirectory: places.run,
          cgroupProcs: cgroups.agentsProcs(),
          logFile: join(places.data, "spawner.log"),
        },
        signal,
      );
    },
    initEnded: ({ sandboxId }) => users.sandboxes?.initGone(sandboxId),
    replaced: () =>
      parts.background.run("end what a lost spawner left", async (signal) => {
        // A sandbox that the lost spawner was making gets as far as it gets meanwhile.
        await wait(orphanDelayMs, signal);
        const since = findSpawner(places.run)?.startTime ?? 0;
        await users.backend?.endOrphans(
          ({ pid, startTime }) => startTime >= since || users.sandboxes?.isInit(pid) === true,
          signal,
        );
      }),
  });
  return {
    spawner,
    use: (sandboxes, backend) => Object.assign(users, { sandboxes, backend }),
    close: () => spawner.close(),
  };
}

const builtChronus = join(
  import.meta.dirname,
  "../../../../native/chronus/target/x86_64-unknown-linux-gnu/release/chronus",
);

async function endSpawner(places: NodePlaces): Promise<void> {
  const running = findSpawner(places.run);
  if (running !== undefined)
    await whenGone(running.pid, running.startTime, AbortSignal.timeout(startTimeoutMs));
}

/** Other nodes of this machine may be in them. */
function removeIfEmpty(...directories: readonly string[]): void {
  for (const directory of directories) {
    if (readdirSync(directory).length === 0) rmdirSync(directory);
  }
}
