import {
  type Claim,
  type Command,
  type CreateSandbox,
  type Environment,
  failureOf,
  type IdempotencyRecord,
  type LayerManifest,
  type ListSandboxes,
  type NodeId,
  type NodeLoad,
  newSandboxId,
  type Outcome,
  PlatformError,
  type Sandbox,
  type SandboxId,
  type SandboxPage,
  type SandboxState,
  type SetLifetime,
  sandboxNotFound,
} from "@dsec/contracts";
import { digestOf } from "@dsec/kit";
import type { ContainerBackend } from "../backends/container/backend.ts";
import type { LayerResolver } from "../layers/resolver.ts";
import type { SandboxRecord } from "../ledger/records.ts";
import { type AdmissionLimits, type LoadMonitor, refuseCreation } from "./admission.ts";
import { getCommand, listCommands } from "./command-views.ts";
import type { Commands } from "./commands.ts";
import { LiveSandbox, type LiveSandboxParts, notRunning } from "./live-sandbox.ts";
import { viewOfRecord } from "./view.ts";

export interface SandboxesOptions extends Omit<LiveSandboxParts, "gone"> {
  readonly nodeId: NodeId;
  readonly backend: ContainerBackend;
  readonly layers: LayerResolver;
  readonly load: LoadMonitor;
  readonly admission: AdmissionLimits;
  readonly creationTimeoutMs: number;
}

/** Who asks: a project, for its own sandboxes; or an administrator, for all. */
export type Asker = Pick<Claim, "project" | "admin">;

interface Creation {
  readonly requestDigest: string;
  readonly made: Promise<Sandbox>;
}

/** All sandboxes of this node: the living are here, those that ended in the ledger. */
export class Sandboxes {
  readonly #options: SandboxesOptions;
  readonly #live = new Map<SandboxId, LiveSandbox>();
  readonly #creations = new Map<SandboxId, Promise<unknown>>();
  readonly #keys = new Map<string, Creation>();
  #isAdmitting = true;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /**
   * Creates a sandbox, or gives the one made under the same key before. It goes on when the caller goes: the key finds it. When it
   * throws, nothing is left and the key is free.
   */
  async create({ project }: Asker, request: CreateSandbox, key: string | undefined): Promise<Sandbox> {
    const requestDigest = digestOf(request);
    if (key === undefined) return this.#create(project, request, undefined);
    const name = `${project} ${key}`;
    const current = this.#keys.get(name);
    if (current !== undefined) {
      expectSameRequest(current.requestDigest, requestDigest);
      return current.made;
    }
    const known = this.#options.ledger.findIdempotency(project, key, Date.now());
    if (known !== undefined) {
      expectSameRequest(known.requestDigest, requestDigest);
      return this.#find(known.sandboxId).view;
    }
    const made = this.#create(project, request, { key, requestDigest });
    this.#keys.set(name, { requestDigest, made });
    try {
      return await made;
    } finally {
      this.#keys.delete(name);
    }
  }

  /** What was made under a key; waits for a creation that is under way. Throws `not_found`. */
  async lookup({ project }: Asker, key: string): Promise<IdempotencyRecord> {
    const current = this.#keys.get(`${project} ${key}`);
    if (current !== undefined) return { requestDigest: current.requestDigest, sandbox: await current.made };
    const known = this.#options.ledger.findIdempotency(project, key, Date.now());
    if (known === undefined) throw new PlatformError("not_found", "Cannot find a sandbox under this key");
    return { requestDigest: known.requestDigest, sandbox: this.#find(known.sandboxId).view };
  }

  get(asker: Asker, id: string): Sandbox {
    return this.#findFor(asker, id).view;
  }

  list(asker: Asker, query: ListSandboxes): SandboxPage {
    const records = this.#options.ledger.listSandboxes({
      project: asker.admin ? undefined : asker.project,
      state: query.state,
      job: query.job,
      labels: (query.label ?? []).map(parseLabel),
      after: query.cursor,
      limit: query.limit,
    });
    const items = records.map((record) => this.#live.get(record.id)?.view ?? viewOfRecord(record, null));
    return { items, next: items.length < query.limit ? null : (items.at(-1)?.id ?? null) };
  }

  /** A sandbox to work in; throws `not_found`, or why it does not run. */
  live(asker: Asker, id: string): LiveSandbox {
    const found = this.#findFor(asker, id);
    if (found instanceof LiveSandbox) return found;
    throw notRunning(found.record);
  }

  /** Commands for reading: also after the sandbox's end, as long as the ledger keeps them. */
  commandsOf(asker: Asker, id: string): Pick<Commands, "list" | "get"> {
    const found = this.#findFor(asker, id);
    if (found instanceof LiveSandbox) return found.commands;
    const { commands } = this.#options.ledger;
    return {
      list: (): Command[] => listCommands(commands, found.record.id),
      get: (commandId) => getCommand(commands, found.record.id, commandId),
    };
  }

  /** How a command ended whose sandbox has ended too; undefined while the sandbox lives. */
  recordedOutcome(asker: Asker, id: string, commandId: string): Outcome | undefined {
    const found = this.#findFor(asker, id);
    if (found instanceof LiveSandbox) return undefined;
    return getCommand(this.#options.ledger.commands, found.record.id, commandId).outcome ?? undefined;
  }

  /** Resolves when everything of it is gone; a sandbox that has ended is no error. */
  async remove(asker: Asker, id: string): Promise<Sandbox> {
    const found = this.#findFor(asker, id);
    if (!(found instanceof LiveSandbox)) return found.view;
    await this.#creations.get(found.id);
    if (this.#live.has(found.id)) await found.end({ end: null, message: null });
    return found.view;
  }

  async setLifetime(asker: Asker, id: string, change: SetLifetime): Promise<Sandbox> {
    const sandbox = this.live(asker, id);
    await sandbox.setLifetime(change);
    return sandbox.view;
  }

  /** Takes no more creations. */
  drain(): void {
    this.#isAdmitting = false;
  }

  /** Ends all sandboxes, and waits for creations under way first. */
  async stopAll(): Promise<void> {
    this.drain();
    await Promise.allSettled(this.#creations.values());
    const reason = { end: failureOf("cancelled"), message: "The node was stopped" };
    await Promise.all([...this.#live.values()].map(async (sandbox) => sandbox.end(reason)));
  }

  /** Leaves all sandboxes running for the next edge. */
  async release(): Promise<void> {
    this.drain();
    await Promise.allSettled(this.#creations.values());
    for (const sandbox of this.#live.values()) sandbox.release();
  }

  /** Puts a sandbox that lived through a restart back among the living. */
  adopt(record: SandboxRecord): LiveSandbox {
    return this.#enter(record);
  }

  /** The spawner says that an init ended. */
  initGone(id: string): void {
    this.#live.get(id as SandboxId)?.initGone();
  }

  isInit(pid: number): boolean {
    return [...this.#live.values()].some((sandbox) => sandbox.pid === pid);
  }

  /** Living sandboxes by state. */
  counts(): Partial<Record<SandboxState, number>> {
    const counts: Partial<Record<SandboxState, number>> = {};
    for (const { state } of this.#live.values()) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  }

  get isCreating(): boolean {
    return this.#creations.size > 0;
  }

  get load(): NodeLoad {
    const { load, admission } = this.#options;
    const occupancy = { sandboxes: this.#live.size, creating: this.#creations.size };
    const admitting = this.#isAdmitting && refuseCreation(occupancy, load.current, admission) === undefined;
    return { ...load.current, ...occupancy, sandboxesMax: admission.sandboxesMax, admitting };
  }

  async #create(
    project: string,
    request: CreateSandbox,
    idempotency: { readonly key: string; readonly requestDigest: string } | undefined,
  ): Promise<Sandbox> {
    this.#admit(request);
    const id = newSandboxId(this.#options.nodeId);
    const creation = Promise.withResolvers<void>();
    this.#creations.set(id, creation.promise);
    try {
      const environment: Environment = { base: "default", toolkits: [], ...request.environment };
      const layers = await this.#options.layers.resolveEnvironment(environment);
      const record = recordOf(id, project, request, { environment, layers });
      await this.#options.ledger.addSandbox(record, idempotency);
      return await this.#make(this.#enter(record), record, layers);
    } finally {
      this.#creations.delete(id);
      creation.resolve();
    }
  }

  async #make(
    sandbox: LiveSandbox,
    { id, spec }: SandboxRecord,
    layers: readonly LayerManifest[],
  ): Promise<Sandbox> {
    const { backend, creationTimeoutMs, log, ledger } = this.#options;
    const startedAtMs = performance.now();
    try {
      const container = await backend.create(
        { id, layers, limits: spec },
        AbortSignal.timeout(creationTimeoutMs),
      );
      try {
        await sandbox.begin(container);
      } catch (error) {
        await container.destroy();
        throw error;
      }
      log.info({ sandboxId: id, durationMs: performance.now() - startedAtMs }, "sandbox created");
      return sandbox.view;
    } catch (error) {
      log.error({ err: error, sandboxId: id }, "sandbox creation failed");
      const message = "The sandbox could not be created";
      await sandbox.abandon({ end: failureOf("internal"), message });
      await ledger.forgetKeysOf(id);
      throw error instanceof PlatformError
        ? error
        : new PlatformError("unavailable", "Cannot create the sandbox", {
            cause: error,
            retryAfterMs: 1_000,
          });
    }
  }

  #admit({ backend = "container" }: CreateSandbox): void {
    if (backend !== "container") {
      throw new PlatformError("unsupported_capability", `This node has no backend "${backend}"`);
    }
    if (!this.#isAdmitting) {
      throw new PlatformError("no_capacity", "The node is being drained", { retryAfterMs: 5_000 });
    }
    const { load, admission } = this.#options;
    const occupancy = { sandboxes: this.#live.size, creating: this.#creations.size };
    const refusal = refuseCreation(occupancy, load.current, admission);
    if (refusal !== undefined) throw refusal;
  }

  #enter(record: SandboxRecord): LiveSandbox {
    const sandbox = new LiveSandbox(record, { ...this.#options, gone: (id) => this.#live.delete(id) });
    this.#live.set(record.id, sandbox);
    return sandbox;
  }

  #find(id: string): LiveSandbox | Ended {
    const sandbox = this.#live.get(id as SandboxId);
    if (sandbox !== undefined) return sandbox;
    const record = this.#options.ledger.sandbox(id as SandboxId);
    if (record === undefined) throw sandboxNotFound(id);
    return { record, project: record.project, view: viewOfRecord(record, null) };
  }

  /** Another project's sandbox answers like one that does not exist. */
  #findFor({ project, admin }: Asker, id: string): LiveSandbox | Ended {
    const found = this.#find(id);
    if (!admin && found.project !== project) throw sandboxNotFound(id);
    return found;
  }
}

interface Ended {
  readonly record: SandboxRecord;
  readonly project: string;
  readonly view: Sandbox;
}

function recordOf(
  id: SandboxId,
  project: string,
  request: CreateSandbox,
  resolved: { readonly environment: Environment; readonly layers: readonly LayerManifest[] },
): SandboxRecord {
  const createdAtMs = Date.now();
  const { cpuCores, memoryMib, diskMib, pidsMax, maxLifetimeMs } = request;
  return {
    id,
    project,
    state: "creating",
    spec: {
      backend: "container",
      environment: resolved.environment,
      layers: resolved.layers.map((layer) => layer.id as SandboxRecord["spec"]["layers"][number]),
      cpuCores,
      memoryMib,
      diskMib,
      pidsMax,
      user: request.user ?? "root",
      env: request.env ?? {},
      labels: request.labels ?? {},
      job: request.job ?? null,
    },
    pid: null,
    startTime: null,
    idBase: null,
    idleTimeoutMs: request.idleTimeoutMs,
    createdAtMs,
    lifetimeExpiresAtMs: maxLifetimeMs === undefined ? null : createdAtMs + maxLifetimeMs,
    endedAtMs: null,
    end: null,
    message: null,
  };
}

function expectSameRequest(one: string, two: string): void {
  if (one !== two) {
    throw new PlatformError("conflict", "Cannot create the sandbox: its key was used for another request");
  }
}

function parseLabel(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  const key = text.slice(0, at);
  if (!/^[A-Za-z0-9._/-]{1,128}$/.test(key)) {
    throw new PlatformError("invalid_request", `Wrong label "${text}": write key=value`);
  }
  return [key, text.slice(at + 1)];
}
