import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { LayerManifest, SandboxId } from "@dsec/contracts";
import { FakeInit } from "../../chronus/fakes/fake-init.ts";
import { WireError } from "../../chronus/frames.ts";
import type { CreateAnswer } from "../../chronus/operations.ts";
import type { SpawnSandbox } from "../../chronus/spawner-client.ts";
import type { SandboxCgroups } from "../../host/cgroups.ts";
import type { IdRange } from "../../host/id-blocks.ts";
import type { LayerReference } from "../../layers/mounts.ts";
import type { ContainerHost } from "../container/container.ts";
import type { SandboxPaths } from "../container/directories.ts";

interface World {
  readonly inits: Map<number, { readonly init: FakeInit; readonly id: string }>;
  readonly groups: Set<SandboxId>;
  readonly directories: Set<SandboxId>;
  nextPid: number;
}

const rangeSize = 65_536;

/**
 * A host in memory that knows what was taken and not given back. Inits are real peers on real sockets. Any single call can be made to
 * fail (`failAt`, before it has done anything), or every call of a name (`alwaysFail`).
 */
export class FakeHost implements ContainerHost, AsyncDisposable {
  readonly calls: string[] = [];
  failAt: number | undefined;
  alwaysFail: ReadonlySet<string> = new Set();
  /** The spawner makes the sandbox and is lost before it can say so. */
  loseAnswerOfCreate = false;
  idsFreedAt: number | undefined;
  processesGoneAt: number | undefined;
  readonly #root: string;
  readonly #world: World;
  readonly #ids = new Set<number>();
  readonly #layers = new Map<string, number>();

  constructor(root: string, world?: World) {
    this.#root = root;
    this.#world = world ?? {
      inits: new Map(),
      groups: new Set(),
      directories: new Set(),
      nextPid: 1_000_000,
    };
  }

  /** The same host for the next edge: what the kernel keeps is there, what the edge held is forgotten. */
  restarted(): FakeHost {
    return new FakeHost(this.#root, this.#world);
  }

  /** What was taken and not given back. */
  held(): string[] {
    return [
      ...[...this.#ids].map((base) => `ids ${base}`),
      ...[...this.#layers].flatMap(([id, count]) => (count > 0 ? [`layer ${id}`] : [])),
      ...[...this.#world.directories].map((id) => `directory ${id}`),
      ...[...this.#world.groups].map((id) => `groups ${id}`),
      ...[...this.#world.inits.values()].map(({ id }) => `init ${id}`),
    ].toSorted();
  }

  initOf(id: string): FakeInit | undefined {
    return [...this.#world.inits.values()].find((each) => each.id === id)?.init;
  }

  /** Ends an init as a crash would. */
  async crash(id: string): Promise<void> {
    for (const [pid, each] of this.#world.inits) if (each.id === id) await this.#end(pid);
  }

  readonly ids = {
    take: (): IdRange => {
      this.#step("ids.take");
      const base = (this.#ids.size + 1) * rangeSize;
      this.#ids.add(base);
      return { base };
    },
    adopt: (base: number): void => void this.#ids.add(base),
    giveBack: (base: number): void => {
      this.#step("ids.giveBack");
      this.#ids.delete(base);
      this.idsFreedAt = this.calls.length;
    },
  };

  readonly layers = {
    acquire: async (layers: readonly LayerManifest[]): Promise<LayerReference> => {
      this.#step("layers.acquire");
      for (const { id } of layers) this.#layers.set(id, (this.#layers.get(id) ?? 0) + 1);
      return {
        layerIds: layers.map(({ id }) => id),
        [Symbol.asyncDispose]: async () => {
          for (const { id } of layers) this.#layers.set(id, (this.#layers.get(id) ?? 0) - 1);
        },
      };
    },
  };

  readonly directories = {
    paths: (id: SandboxId): SandboxPaths => {
      const root = join(this.#root, id.slice(-6));
      const [upper, work, output] = [join(root, "upper"), join(root, "work"), join(root, "output")];
      return { root, upper, work, output, socket: join(root, "s") };
    },
    create: (id: SandboxId): SandboxPaths => {
      this.#step("directories.create");
      this.#world.directories.add(id);
      const paths = this.directories.paths(id);
      mkdirSync(paths.root, { recursive: true });
      return paths;
    },
    remove: async (id: SandboxId): Promise<void> => {
      this.#step("directories.remove");
      this.#world.directories.delete(id);
    },
    list: (): SandboxId[] => [...this.#world.directories],
  };

  readonly cgroups = {
    create: (id: SandboxId): SandboxCgroups => {
      this.#step("cgroups.create");
      this.#world.groups.add(id);
      return this.#groups(id);
    },
    adopt: (id: SandboxId): SandboxCgroups => this.#groups(id),
    list: (): SandboxId[] => [...this.#world.groups],
  };

  readonly spawner = {
    create: async ({ sandboxId, socketPath }: SpawnSandbox): Promise<CreateAnswer> => {
      this.#step("spawner.create");
      const init = await FakeInit.listen(socketPath, sandboxId);
      const pid = this.#world.nextPid++;
      this.#world.inits.set(pid, { init, id: sandboxId });
      init.onShutdown = async () => this.#end(pid);
      if (this.loseAnswerOfCreate) throw new WireError("The connection was lost");
      return { pid, startTime: pid };
    },
    kill: async (pid: number): Promise<void> => {
      this.#step("spawner.kill");
      await this.#end(pid);
    },
  };

  readonly processes = {
    isSame: (pid: number, startTime: number): boolean => this.#world.inits.has(pid) && pid === startTime,
    whenGone: async (pid: number): Promise<void> => {
      this.#step("processes.whenGone");
      if (this.#world.inits.has(pid)) throw new Error("it would wait for ever");
      this.processesGoneAt = this.calls.length;
    },
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.#world.inits.keys()) await this.#end(pid);
  }

  #groups(id: SandboxId): SandboxCgroups {
    return {
      runnerProcs: [],
      commandsDirectory: "",
      oomFile: null,
      killAll: () => undefined,
      populated: () => false,
      remove: async () => {
        this.#step("groups.remove");
        this.#world.groups.delete(id);
      },
      memoryBytes: () => 0,
      oomKills: () => 0,
    };
  }

  async #end(pid: number): Promise<void> {
    const process = this.#world.inits.get(pid);
    this.#world.inits.delete(pid);
    await process?.init[Symbol.asyncDispose]();
  }

  #step(name: string): void {
    const number = this.calls.length;
    this.calls.push(name);
    if (number === this.failAt || this.alwaysFail.has(name)) throw new Error(`injected failure of ${name}`);
  }
}
