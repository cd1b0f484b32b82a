import {
  type Failure,
  failureOf,
  PlatformError,
  type Sandbox,
  type SandboxId,
  type SetLifetime,
} from "@dsec/contracts";
import { type Background, type Log, wait } from "@dsec/kit";
import type { Container } from "../backends/container/container.ts";
import type { HealthMonitor } from "../chronus/health.ts";
import type { InitClient } from "../chronus/init-client.ts";
import { InitFiles } from "../chronus/init-files.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SandboxRecord } from "../ledger/records.ts";
import { Activity } from "./activity.ts";
import { Commands } from "./commands.ts";
import { SandboxFiles } from "./files.ts";
import type { ImageFacts, ImageFactsReader } from "./image-facts.ts";
import { advance, type EndReason, type Lifecycle, type LifecycleEvent } from "./lifecycle.ts";
import { viewOfRecord } from "./view.ts";

export interface LiveSandboxParts {
  readonly ledger: Ledger;
  readonly health: HealthMonitor;
  readonly images: ImageFactsReader;
  readonly background: Background;
  readonly log: Log;
  /** Called once, when everything of the sandbox is gone. */
  readonly gone: (id: SandboxId) => void;
}

const connectTimeoutMs = 10_000;
const reconnectTimeoutMs = 2_000;
const reconnectsMax = 2;
const destroyRetryMsMax = 30_000;

/** One sandbox that is not yet over: its state, its container, the connection to its init, and the clocks that end it. */
export class LiveSandbox {
  readonly id: SandboxId;
  readonly commands: Commands;
  readonly files: SandboxFiles;
  readonly activity: Activity;
  readonly #parts: LiveSandboxParts;
  #record: SandboxRecord;
  #state: Lifecycle = { kind: "creating" };
  #container: Container | undefined;
  #init: InitClient | undefined;
  #facts: Promise<ImageFacts> | undefined;
  #ending: Promise<void> | undefined;
  #oomKillsSeen = 0;

  constructor(record: SandboxRecord, parts: LiveSandboxParts) {
    this.id = record.id;
    this.#record = record;
    this.#parts = parts;
    this.activity = new Activity(record, (cause) => this.#onExpired(cause));
    const init = (): InitClient => this.#requireInit();
    const { user, env } = record.spec;
    this.files = new SandboxFiles({ user, init });
    this.commands = new Commands({
      sandboxId: this.id,
      user,
      env,
      facts: async () => this.#requireFacts(),
      init,
      log: parts.ledger.commands,
      activity: this.activity,
      logger: parts.log,
    });
  }

  get project(): string {
    return this.#record.project;
  }

  get state(): Lifecycle["kind"] {
    return this.#state.kind;
  }

  get pid(): number | undefined {
    return this.#container?.pid;
  }

  get view(): Sandbox {
    const { idleExpiresAtMs } = this.activity;
    return viewOfRecord(this.#record, this.state === "running" ? idleExpiresAtMs : null);
  }

  /** A new container: connects, learns the image, and is running once the ledger says so. */
  async begin(container: Container): Promise<void> {
    this.#container = container;
    await this.#connect(AbortSignal.timeout(connectTimeoutMs));
    await this.#requireFacts();
    const { pid, startTime, idBase } = container;
    await this.#advance({ kind: "created" }, { pid, startTime, idBase });
  }

  /** A container that lived through a restart of the edge: its commands are settled before anything is served. */
  async resume(container: Container): Promise<void> {
    this.#container = container;
    this.#state = { kind: "running" };
    this.#oomKillsSeen = container.oomKills();
    await this.#connect(AbortSignal.timeout(connectTimeoutMs));
    await this.commands.reconcile(this.#requireInit());
  }

  /** The creation failed and everything was given back. */
  async abandon(reason: EndReason): Promise<void> {
    this.activity[Symbol.dispose]();
    this.#init?.close();
    await this.#advance({ kind: "creationFailed", reason, atMs: Date.now() }, {});
    this.#parts.gone(this.id);
  }

  /** Ends the sandbox; resolves when everything of it is gone. Called again it waits for the same end. */
  async end(reason: EndReason): Promise<void> {
    this.#ending ??= this.#end(reason);
    await this.#ending;
  }

  async setLifetime({ idleTimeoutMs, maxLifetimeMs, extendMs }: SetLifetime): Promise<void> {
    this.#requireInit();
    const { limits } = this.activity;
    const nowMs = Date.now();
    let lifetimeExpiresAtMs = limits.lifetimeExpiresAtMs;
    if (maxLifetimeMs !== undefined) {
      lifetimeExpiresAtMs = maxLifetimeMs === null ? null : this.#record.createdAtMs + maxLifetimeMs;
    }
    if (extendMs !== undefined && lifetimeExpiresAtMs !== null) {
      lifetimeExpiresAtMs = Math.max(lifetimeExpiresAtMs, nowMs + extendMs);
    }
    const change = { idleTimeoutMs: idleTimeoutMs ?? limits.idleTimeoutMs, lifetimeExpiresAtMs };
    await this.#parts.ledger.updateSandbox(this.id, change);
    this.#record = { ...this.#record, ...change };
    this.activity.limits = change;
  }

  /** The spawner or the kernel says that init is gone. */
  initGone(): void {
    if (this.state !== "running") return;
    this.#fail(this.#blame(), "The sandbox's init ended");
  }

  /** Leaves the sandbox running for the next edge. */
  release(): void {
    this.activity[Symbol.dispose]();
    const init = this.#init;
    this.#init = undefined;
    init?.close();
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const container = this.#container;
    if (container === undefined) throw new PlatformError("invalid_state", "The sandbox has no container yet");
    const client: InitClient = await container.connect(
      {
        commandEnded: (outcome) => {
          if (outcome.cause === "oom") this.#oomKillsSeen = container.oomKills();
          this.#parts.background.run("record the end of a command", async () =>
            this.commands.settle(outcome),
          );
        },
        closed: (reason) => this.#onClosed(client, reason),
      },
      signal,
    );
    this.#init = client;
    this.#parts.health.watch(client.connection, () => {
      if (this.#init === client) this.#fail(this.#blame(), "The sandbox does not answer");
    });
  }

  #onClosed(client: InitClient, reason: string): void {
    if (this.#init !== client || this.state !== "running" || this.#parts.background.signal.aborted) return;
    this.#parts.log.warn({ sandboxId: this.id, reason }, "connection to a sandbox lost");
    this.#parts.background.run("reconnect a sandbox", async (signal) => this.#reconnect(signal));
  }

  async #reconnect(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; attempt <= reconnectsMax && this.#container?.isAlive() === true; attempt++) {
      try {
        await this.#connect(AbortSignal.any([signal, AbortSignal.timeout(reconnectTimeoutMs)]));
        await this.commands.reconcile(this.#requireInit());
        return;
      } catch (error) {
        this.#parts.log.warn({ err: error, sandboxId: this.id, attempt }, "cannot reconnect a sandbox");
        await wait(100, signal);
      }
    }
    if (!signal.aborted) this.#fail(this.#blame(), "The sandbox's init ended");
  }

  /** Infra is claimed only when the sandbox's own limits were not hit just before. */
  #blame(): Failure {
    const wereLimitsHit = (this.#container?.oomKills() ?? 0) > this.#oomKillsSeen;
    return failureOf(wereLimitsHit ? "agent_killed" : "agent_unreachable");
  }

  #fail(end: Failure, message: string): void {
    this.#parts.log.warn({ sandboxId: this.id, cause: end.cause }, "sandbox lost");
    this.#parts.background.run("end a lost sandbox", async () => this.end({ end, message }));
  }

  #onExpired(cause: "idle_expired" | "lifetime_expired"): void {
    if (this.state !== "running") return;
    const end = failureOf(cause, { whileCommandRan: this.commands.isRunning });
    const message =
      cause === "idle_expired" ? "The sandbox was idle for its limit" : "The sandbox reached its lifetime";
    this.#parts.background.run("end an expired sandbox", async () => this.end({ end, message }));
  }

  async #end(reason: EndReason): Promise<void> {
    const { log, gone } = this.#parts;
    try {
      await this.#advance({ kind: "endBegan", reason }, { end: reason.end, message: reason.message });
    } catch (error) {
      this.#ending = undefined;
      throw error;
    }
    this.activity[Symbol.dispose]();
    await this.commands.settleAll(reason);
    await this.#destroy();
    this.#init?.close();
    await this.#advance({ kind: "gone", atMs: Date.now() }, {});
    log.info({ sandboxId: this.id, cause: reason.end?.cause ?? "stop" }, "sandbox ended");
    gone(this.id);
  }

  /** Does not give up: as long as something is left the sandbox is stopping, and its ids are not given to another. */
  async #destroy(): Promise<void> {
    const { signal } = this.#parts.background;
    for (let pauseMs = 500; ; pauseMs = Math.min(2 * pauseMs, destroyRetryMsMax)) {
      try {
        await this.#container?.destroy();
        return;
      } catch (cause) {
        this.#parts.log.error({ err: cause, sandboxId: this.id }, "cannot remove a sandbox");
        if (signal.aborted) throw new PlatformError("unavailable", "The sandbox is not gone yet", { cause });
      }
      await wait(pauseMs, signal);
    }
  }

  /** The ledger first, then the state. */
  async #advance(event: LifecycleEvent, change: Partial<SandboxRecord>): Promise<void> {
    const next = advance(this.#state, event);
    const isOver = next.kind === "stopped" || next.kind === "failed";
    const written = {
      ...change,
      state: next.kind,
      ...(isOver ? { endedAtMs: next.endedAtMs, end: next.reason.end, message: next.reason.message } : {}),
    };
    await this.#parts.ledger.updateSandbox(this.id, written);
    this.#record = { ...this.#record, ...written };
    this.#state = next;
  }

  #requireInit(): InitClient {
    if (this.state === "running" && this.#init !== undefined) {
      if (!this.#init.connection.closed) return this.#init;
      throw new PlatformError("unavailable", "The sandbox is out of touch", { retryAfterMs: 500 });
    }
    if (this.state === "creating" && this.#init !== undefined) return this.#init;
    throw notRunning(this.#record);
  }

  async #requireFacts(): Promise<ImageFacts> {
    this.#facts ??= this.#parts.images.of(
      this.#record.spec.layers,
      new InitFiles(this.#requireInit().connection),
    );
    return this.#facts;
  }
}

/** The error of a call on a sandbox that does not run. */
export function notRunning({
  state,
  end,
  message,
}: Pick<SandboxRecord, "state" | "end" | "message">): PlatformError {
  if (state === "creating" || state === "paused") {
    return new PlatformError("invalid_state", `Cannot do that while the sandbox is ${state}`);
  }
  if (end?.cause === "agent_unreachable" || end?.cause === "agent_killed") {
    return new PlatformError(end.cause, message ?? "The sandbox was lost", { details: { end } });
  }
  return new PlatformError("gone", "The sandbox has ended", { details: { end } });
}
