import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type CreateSandbox, type LayerManifest, type NodeId, PlatformError } from "@dsec/contracts";
import { Background, silentLog } from "@dsec/kit";
import { ContainerBackend } from "../../backends/container/backend.ts";
import { FakeHost } from "../../backends/fakes/fake-host.ts";
import { HealthMonitor } from "../../chronus/health.ts";
import type { HostLoad } from "../../host/load.ts";
import { LayerResolver } from "../../layers/resolver.ts";
import { Ledger } from "../../ledger/ledger.ts";
import { LoadMonitor } from "../admission.ts";
import { ImageFactsReader } from "../image-facts.ts";
import { type RecoveryReport, recover } from "../recovery.ts";
import { Sandboxes } from "../sandboxes.ts";

export const idleLoad: HostLoad = {
  memoryTotalMib: 8_192,
  memoryAvailableMib: 8_000,
  memoryPressure: 0,
  cpuPressure: 0,
  diskFreeMib: 100_000,
  cpuCores: 2,
};

/** A creation request as it is after validation. */
export const plainRequest: CreateSandbox = {
  cpuCores: 1,
  memoryMib: 64,
  diskMib: 64,
  pidsMax: 64,
  idleTimeoutMs: 900_000,
};

const manifest = { id: "lyaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", name: "default" } as LayerManifest;
const store = {
  resolve: async (reference: string): Promise<LayerManifest> => {
    if (reference === "default" || reference === manifest.id) return manifest;
    throw new PlatformError("not_found", `Cannot find layer "${reference}"`);
  },
} as unknown as ConstructorParameters<typeof LayerResolver>[0];

/** A node on a fake host that may lose its edge and get the next one. */
export class TestNode {
  host: FakeHost;
  ledger: Ledger;
  sandboxes: Sandboxes;
  backend: ContainerBackend;
  load: HostLoad = idleLoad;
  #background: Background;
  readonly #ledgerPath: string;

  constructor(context: TestContext) {
    const directory = mkdtempSync(join(tmpdir(), "dsec-node-"));
    this.#ledgerPath = join(directory, "ledger.sqlite");
    this.host = new FakeHost(directory);
    ({
      ledger: this.ledger,
      background: this.#background,
      backend: this.backend,
      sandboxes: this.sandboxes,
    } = this.#start());
    context.after(async () => {
      await this.sandboxes.release();
      await this.#background[Symbol.asyncDispose]();
      await this.host[Symbol.asyncDispose]();
      this.ledger[Symbol.dispose]();
      rmSync(directory, { recursive: true });
    });
  }

  /** Ends the edge without a word to anybody, and starts the next one. */
  async restart(between: () => Promise<void> = async () => undefined): Promise<RecoveryReport> {
    await this.sandboxes.release();
    await this.#background[Symbol.asyncDispose]();
    this.ledger[Symbol.dispose]();
    await between();
    this.host = this.host.restarted();
    ({
      ledger: this.ledger,
      background: this.#background,
      backend: this.backend,
      sandboxes: this.sandboxes,
    } = this.#start());
    const { ledger, backend, sandboxes } = this;
    return recover({ ledger, backend, sandboxes, log: silentLog() }, AbortSignal.timeout(5_000));
  }

  #start(): { ledger: Ledger; background: Background; backend: ContainerBackend; sandboxes: Sandboxes } {
    const log = silentLog();
    const ledger = new Ledger(this.#ledgerPath);
    const background = new Background(log);
    const layers = new LayerResolver(store);
    const resolve = async (id: string): Promise<LayerManifest> => layers.resolve(id);
    const backend = new ContainerBackend({ host: this.host, listInits: () => [], resolve, background, log });
    const sandboxes = new Sandboxes({
      nodeId: "aaaa" as NodeId,
      backend,
      layers,
      ledger,
      background,
      log,
      health: new HealthMonitor(),
      images: new ImageFactsReader(ledger),
      load: new LoadMonitor(() => this.load),
      admission: {
        sandboxesMax: 8,
        creationsMax: 8,
        memoryReserveMib: 512,
        diskReserveMib: 1_024,
        memoryPressureMax: 20,
      },
      creationTimeoutMs: 5_000,
    });
    return { ledger, background, backend, sandboxes };
  }
}
