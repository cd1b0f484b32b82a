import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  findLeaks,
  isRunning,
  lookAtHost,
  type Places,
  startPlatform as start,
  stopPlatform,
  type UpState,
} from "@dsec/cli";
import type { EdgeConfig, Leak } from "@dsec/edge";
import { DsecClient } from "@dsec/sdk";
import { withDaemons } from "./daemons.ts";

export interface PlatformOptions {
  /** On this machine, each with directories of its own; 1 when not given. */
  readonly edges?: number;
  readonly edgeSettings?: Partial<EdgeConfig>;
  readonly progress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * A whole platform in processes of its own, with temporary directories and free ports; the layer store is that of this machine.
 * Disposing ends it and fails when anything of it is left.
 */
export interface TestPlatform extends AsyncDisposable {
  readonly url: string;
  /** An admin key. */
  readonly key: string;
  readonly client: DsecClient;
  readonly places: Places;
  /** For child processes: the `dsec` command and SDKs find this platform by it. */
  readonly env: Readonly<Record<string, string>>;
  /** The processes as they are now. */
  readonly state: UpState;
  /** A client of a new project of its own. The caller closes it. */
  openProject(
    name: string,
  ): Promise<{ readonly client: DsecClient; readonly key: string; readonly project: string }>;
  /** SIGKILL; its sandboxes live on. */
  killEdge(number?: number): Promise<void>;
  /** Starts every edge that does not run. */
  restartEdges(): Promise<void>;
  killControl(): Promise<void>;
  restartControl(): Promise<void>;
  /** What is there beyond the platform itself, with no sandbox alive: must be nothing. */
  leaks(): Promise<readonly Leak[]>;
}

const defaultSignalMs = 900_000;

/** Starts a platform; the first time on a machine this builds the default base layer, which takes a minute. */
export async function startPlatform(options: PlatformOptions = {}): Promise<TestPlatform> {
  const signal = options.signal ?? AbortSignal.timeout(defaultSignalMs);
  await using held = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "dsec-test-"));
  held.defer(() => rmSync(directory, { recursive: true, force: true }));
  // Control runs as another user and must reach its own directory below.
  chmodSync(directory, 0o711);
  const places: Places = {
    runDir: join(directory, "run"),
    dataDir: join(directory, "data"),
    layersDir: process.env["DSEC_LAYERS_DIR"] ?? "/var/lib/dsec/layers",
    apiPort: 0,
    clusterPort: 0,
  };
  const progress = options.progress ?? (() => {});
  const { edges = 1, edgeSettings = {} } = options;
  const startAgain = async (): Promise<UpState> =>
    (await start({ places, edges, edgeSettings, progress }, signal)).state;

  const lookBefore = lookAtHost(places);
  const platform: { state: UpState } = { state: await startAgain() };
  const nodeIds = new Set(platform.state.edges.map((edge) => edge.nodeId));
  held.defer(async () => {
    const ids = [...nodeIds];
    await stopPlatform(platform.state, progress);
    const leaks = await findLeaks(lookBefore, { places, nodeIds: ids }, AbortSignal.timeout(30_000));
    assert.deepEqual(leaks, [], `the platform left ${leaks.length} things`);
  });
  const key = readFileSync(platform.state.keyFile, "utf8").trim();
  const lookUp = lookAtHost(places);
  const owner = { places, platform, startAgain, nodeIds, lookUp };
  return new RunningPlatform(owner, key, held.move());
}

interface Owner {
  readonly places: Places;
  readonly platform: { state: UpState };
  readonly startAgain: () => Promise<UpState>;
  readonly nodeIds: Set<string>;
  readonly lookUp: ReturnType<typeof lookAtHost>;
}

class RunningPlatform implements TestPlatform {
  readonly key: string;
  readonly #owner: Owner;
  readonly #held: AsyncDisposableStack;
  #client: DsecClient;

  constructor(owner: Owner, key: string, held: AsyncDisposableStack) {
    this.#owner = owner;
    this.#held = held;
    this.key = key;
    this.#client = new DsecClient({ url: this.url, key });
  }

  get url(): string {
    return this.state.url;
  }

  get client(): DsecClient {
    return this.#client;
  }

  get state(): UpState {
    return this.#owner.platform.state;
  }

  get places(): Places {
    return this.#owner.places;
  }

  get env(): Readonly<Record<string, string>> {
    const { runDir, dataDir, layersDir } = this.places;
    return {
      DSEC_URL: this.url,
      DSEC_KEY: this.key,
      DSEC_RUN_DIR: runDir,
      DSEC_DATA_DIR: dataDir,
      DSEC_LAYERS_DIR: layersDir,
    };
  }

  async openProject(name: string): ReturnType<TestPlatform["openProject"]> {
    const project = await this.client.projects.create(name);
    const { secret } = await this.client.keys.create({ project: project.id, name, role: "member" });
    return { client: new DsecClient({ url: this.url, key: secret }), key: secret, project: project.id };
  }

  async killEdge(number = 0): Promise<void> {
    const edge = this.state.edges[number];
    assert.ok(edge !== undefined, `there is no edge ${number}`);
    await kill(edge);
  }

  async killControl(): Promise<void> {
    await kill(this.state.control);
  }

  async restartEdges(): Promise<void> {
    await this.#startAgain();
  }

  async restartControl(): Promise<void> {
    await this.#startAgain();
    this.#client.close();
    this.#client = new DsecClient({ url: this.url, key: this.key });
  }

  async leaks(): Promise<readonly Leak[]> {
    const { places, nodeIds, lookUp } = this.#owner;
    const { control, edges } = this.state;
    const daemons = { pids: [control, ...edges].map(({ pid }) => pid), runDir: places.runDir };
    const before = withDaemons(lookUp, lookAtHost(places), daemons);
    return await findLeaks(before, { places, nodeIds: [...nodeIds] }, AbortSignal.timeout(30_000));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close();
    await this.#held.disposeAsync();
  }

  async #startAgain(): Promise<void> {
    this.#owner.platform.state = await this.#owner.startAgain();
    for (const edge of this.state.edges) this.#owner.nodeIds.add(edge.nodeId);
  }
}

async function kill(identity: { readonly pid: number; readonly startTime: number }): Promise<void> {
  process.kill(identity.pid, "SIGKILL");
  const deadline = performance.now() + 10_000;
  while (isRunning(identity)) {
    assert.ok(performance.now() < deadline, `process ${identity.pid} survives SIGKILL`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
