import type { LayerManifest, SandboxId } from "@dsec/contracts";
import { type Background, type Log, wait } from "@dsec/kit";
import type { CreateAnswer } from "../../chronus/operations.ts";
import type { InitProcess } from "../../host/inits.ts";
import {
  adoptContainer,
  type Container,
  type ContainerHost,
  type ContainerRequest,
  createContainer,
  LeftBehindError,
  removeTraces,
} from "./container.ts";

const retryFirstMs = 1_000;
const retryMsMax = 60_000;

export interface ContainerBackendOptions {
  readonly host: ContainerHost;
  /** Inits of this node by what the kernel says. */
  readonly listInits: () => readonly InitProcess[];
  readonly resolve: (layerId: string) => Promise<LayerManifest>;
  readonly background: Background;
  readonly log: Log;
}

/** Sandboxes as containers: creates, adopts, and removes what nobody holds any more. */
export class ContainerBackend {
  readonly #options: ContainerBackendOptions;

  constructor(options: ContainerBackendOptions) {
    this.#options = options;
  }

  /** Gives everything back when it throws; what cannot be given back at once is tried again in the background. */
  async create(request: ContainerRequest, signal: AbortSignal): Promise<Container> {
    try {
      return await createContainer(this.#options.host, request, signal);
    } catch (error) {
      if (error instanceof LeftBehindError) {
        this.#options.log.error(
          { err: error, sandboxId: request.id },
          "failed creation left something behind",
        );
        this.removeLater(request.id, error.idBase);
      }
      throw error;
    }
  }

  /** Takes over a living container of an earlier edge. */
  async adopt(
    request: Omit<ContainerRequest, "layers"> & { readonly layers: readonly string[] },
    known: { readonly pid: number; readonly startTime: number; readonly idBase: number },
  ): Promise<Container> {
    const layers = await Promise.all(request.layers.map(this.#options.resolve));
    return adoptContainer(this.#options.host, { ...request, layers }, known);
  }

  isAlive(pid: number, startTime: number): boolean {
    return this.#options.host.processes.isSame(pid, startTime);
  }

  /** Every sandbox of which the host shows a group, a directory or a socket. */
  traces(): ReadonlySet<SandboxId> {
    const { cgroups, directories } = this.#options.host;
    return new Set([...cgroups.list(), ...directories.list()]);
  }

  /** Idempotent; throws when something cannot be removed. */
  async removeTraces(id: SandboxId, init: CreateAnswer | undefined): Promise<void> {
    await removeTraces(this.#options.host, id, init);
  }

  /** Removes traces in the background, again and again until it succeeds; then the ids are free. */
  removeLater(id: SandboxId, idBase: number | undefined): void {
    this.#options.background.run("remove what a sandbox left behind", async (signal) => {
      for (let pauseMs = retryFirstMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, retryMsMax)) {
        await wait(pauseMs, signal);
        try {
          await this.removeTraces(id, undefined);
          if (idBase !== undefined) this.#options.host.ids.giveBack(idBase);
          return;
        } catch (error) {
          this.#options.log.warn({ err: error, sandboxId: id }, "cannot remove what a sandbox left behind");
        }
      }
    });
  }

  /**
   * Ends inits that no sandbox explains: made by a spawner that was lost before it could say so. `isKnown` tells the others,
   * and those that a creation under way may be making.
   */
  async endOrphans(isKnown: (init: InitProcess) => boolean, signal: AbortSignal): Promise<void> {
    const { processes, spawner } = this.#options.host;
    for (const init of this.#options.listInits()) {
      if (isKnown(init)) continue;
      const { pid, startTime } = init;
      this.#options.log.warn({ pid }, "ending an init that belongs to no sandbox");
      await spawner.kill(pid, startTime, signal);
      await processes.whenGone(pid, startTime, signal);
    }
  }
}
