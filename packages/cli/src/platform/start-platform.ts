import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "@dsec/contracts";
import type { ControlConfig } from "@dsec/control";
import type { EdgeConfig, HostSnapshot } from "@dsec/edge";
import { parse } from "@dsec/kit";
import { DsecClient } from "@dsec/sdk";
import { Type } from "typebox";
import { controlArguments, dsecMain, edgeArguments } from "./daemon-arguments.ts";
import { readKey } from "./key-file.ts";
import { lookAtHost, saveLook } from "./leaks.ts";
import { filesOf, type Places } from "./places.ts";
import { endProcess, isRunning, type ReadyDaemon, startDaemon } from "./processes.ts";
import { type EdgeState, isWhole, readState, type UpState, writeState } from "./state.ts";
import { findUnprivilegedUser, giveTree } from "./unprivileged.ts";

export interface StartedPlatform {
  readonly state: UpState;
  /** How this host looked before anything was started; undefined when the platform ran already. */
  readonly lookBefore: HostSnapshot | undefined;
}

export interface StartOptions {
  readonly places: Places;
  /** Edges on this machine, each with directories of its own. */
  readonly edges: number;
  /** Settings of every edge beyond those that follow from the places. */
  readonly edgeSettings?: Partial<EdgeConfig>;
  readonly progress: (line: string) => void;
}

const controlReadyMsMax = 20_000;
/** An edge builds the default base before it is ready, which takes minutes the first time. */
const edgeReadyMsMax = 900_000;
const nodeHealthyMsMax = 20_000;
const graceMs = 30_000;

/**
 * Starts control and edges as processes of their own and resolves when sandboxes can be created. A platform that runs already is
 * answered as it is; one that lost a process gets it back. Whatever fails, what this call started is ended.
 */
export async function startPlatform(options: StartOptions, signal: AbortSignal): Promise<StartedPlatform> {
  const { places, progress } = options;
  const known = readState(places.runDir);
  if (known !== undefined && isWhole(known)) return { state: known, lookBefore: undefined };
  mkdirSync(places.runDir, { recursive: true, mode: 0o755 });
  mkdirSync(places.dataDir, { recursive: true, mode: 0o755 });
  const isFresh = known === undefined || !(isRunning(known.control) || known.edges.some(isRunning));
  const lookBefore = isFresh ? lookAtHost(places) : undefined;
  if (lookBefore !== undefined) saveLook(lookBefore, places.runDir);

  await using held = new AsyncDisposableStack();
  const starter = new Starter(options, held, signal);
  const control = known !== undefined && isRunning(known.control) ? known : await starter.startControl(known);
  await using client = new DsecClient({ url: control.url, key: readKey(control.keyFile) });
  const edges: EdgeState[] = [];
  for (let number = 0; number < Math.max(options.edges, known?.edges.length ?? 0); number += 1) {
    const running = known?.edges[number];
    if (running !== undefined && isRunning(running)) edges.push(running);
    else edges.push(await starter.startEdge(number, { client, clusterUrl: control.clusterUrl }));
  }
  progress("waiting for the nodes to report");
  await nodesAreHealthy(client, edges, signal);
  const { url, clusterUrl, keyFile } = control;
  const { runDir, dataDir, layersDir } = places;
  const startedAtMs = Date.now();
  const directories = { runDir, dataDir, layersDir, startedAtMs };
  const state: UpState = {
    formatVersion: 1,
    url,
    clusterUrl,
    keyFile,
    ...directories,
    control: control.control,
    edges,
  };
  writeState(state);
  held.move();
  return { state, lookBefore };
}

const ControlReady = Type.Object(
  { url: Type.String(), clusterUrl: Type.String() },
  { additionalProperties: false },
);
const EdgeReady = Type.Object({ nodeId: Type.String(), url: Type.String() }, { additionalProperties: false });

/** Starts single processes; what it started is ended when the stack that holds it is disposed. */
class Starter {
  readonly #options: StartOptions;
  readonly #held: AsyncDisposableStack;
  readonly #signal: AbortSignal;

  constructor(options: StartOptions, held: AsyncDisposableStack, signal: AbortSignal) {
    this.#options = options;
    this.#held = held;
    this.#signal = signal;
  }

  /** At the ports of `before`, when there was one: edges and clients know them. */
  async startControl(
    before: UpState | undefined,
  ): Promise<Pick<UpState, "url" | "clusterUrl" | "keyFile" | "control">> {
    const { places, progress } = this.#options;
    progress("starting control");
    const files = filesOf(places.runDir);
    const dataDir = join(places.dataDir, "control");
    const keyFile = join(dataDir, "admin-key");
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const config: Partial<ControlConfig> = {
      dataDir,
      bootstrapKeyFile: keyFile,
      listen: { host: "127.0.0.1", port: portOf(before?.url) ?? places.apiPort },
      clusterListen: { host: "127.0.0.1", port: portOf(before?.clusterUrl) ?? places.clusterPort },
    };
    writeFileSync(files.controlConfig, JSON.stringify(config), { mode: 0o644 });
    // Whoever control runs as can reach its directory, without read rights above it.
    chmodSync(places.dataDir, 0o711);
    const user = findUnprivilegedUser({
      files: [dsecMain, process.execPath, files.controlConfig],
      directories: [dataDir],
    });
    if (user !== undefined) giveTree(dataDir, user);
    const daemon = await this.#start({
      name: "control",
      configFile: files.controlConfig,
      logFile: files.controlLog,
      readyMsMax: controlReadyMsMax,
      ...(user === undefined ? {} : { user }),
    });
    const { url, clusterUrl } = parse(ControlReady, daemon.ready, "first line of control");
    const { pid, startTime } = daemon;
    const control = { pid, startTime, config: files.controlConfig, log: files.controlLog };
    return { url, clusterUrl, keyFile, control };
  }

  async startEdge(
    number: number,
    link: { readonly client: DsecClient; readonly clusterUrl: string },
  ): Promise<EdgeState> {
    const { places, progress, edgeSettings } = this.#options;
    progress(`starting edge${number === 0 ? "" : ` ${number + 1}`}`);
    const { token } = await link.client.nodes.createJoinToken({ signal: this.#signal });
    const configFile = join(places.runDir, `edge-${number}.json`);
    const logFile = join(places.runDir, `edge-${number}.log`);
    const config: Partial<EdgeConfig> = {
      dataDir: number === 0 ? places.dataDir : join(places.dataDir, `edge-${number}`),
      runDir: places.runDir,
      layersDir: places.layersDir,
      join: { url: link.clusterUrl, token },
      ...edgeSettings,
    };
    writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 });
    const daemon = await this.#start({ name: "edge", configFile, logFile, readyMsMax: edgeReadyMsMax });
    const { nodeId } = parse(EdgeReady, daemon.ready, "first line of edge");
    return { pid: daemon.pid, startTime: daemon.startTime, config: configFile, log: logFile, nodeId };
  }

  async #start(daemon: {
    readonly name: "control" | "edge";
    readonly configFile: string;
    readonly logFile: string;
    readonly readyMsMax: number;
    readonly user?: { readonly uid: number; readonly gid: number };
  }): Promise<ReadyDaemon> {
    const { configFile, ...rest } = daemon;
    const argv =
      daemon.name === "control" ? controlArguments(configFile) : edgeArguments(configFile, { end: false });
    const { progress: onProgress } = this.#options;
    const started = await startDaemon({ ...rest, argv, graceMs, onProgress }, this.#signal);
    // An edge ends with its sandboxes then, and leaves nothing.
    this.#held.defer(async () => await endProcess(started, graceMs, "SIGINT"));
    return started;
  }
}

function portOf(url: string | undefined): number | undefined {
  return url === undefined ? undefined : Number(new URL(url).port);
}

/** Waits until control has heard from each edge. */
async function nodesAreHealthy(
  client: DsecClient,
  edges: readonly EdgeState[],
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + nodeHealthyMsMax;
  for (;;) {
    const nodes = await client.nodes.list({ signal });
    const healthy = new Set(nodes.filter((node) => node.health === "healthy").map((node) => node.id));
    const missing = edges.filter((edge) => !healthy.has(edge.nodeId));
    if (missing.length === 0) return;
    if (performance.now() > deadline) {
      const names = missing.map((edge) => edge.nodeId).join(", ");
      throw new PlatformError(
        "unavailable",
        `Cannot start platform: control does not hear from edge ${names}`,
      );
    }
    await delay(20, undefined, { signal });
  }
}
