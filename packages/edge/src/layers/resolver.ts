import {
  type Environment,
  type LayerId,
  type LayerManifest,
  layerIdPattern,
  PlatformError,
} from "@dsec/contracts";
import type { LayerSource, LayerStore, Progress } from "./store.ts";

/** A name that another node gave to a new layer is seen after this long. */
const namesKeptMs = 1_000;
const manifestsKept = 4_096;

/** The store's layers by id and name, remembered: creations read no file of the store for what they resolved just before. */
export class LayerResolver {
  readonly #store: LayerStore;
  readonly #manifests = new Map<string, LayerManifest>();
  readonly #names = new Map<string, { readonly id: LayerId; readonly untilMs: number }>();

  constructor(store: LayerStore) {
    this.#store = store;
  }

  /** The layers of an environment, lowest first. Throws `not_found`, or `invalid_request` when a layer is used twice. */
  async resolveEnvironment({ base, workspace, toolkits }: Environment): Promise<LayerManifest[]> {
    const references = [base, ...(workspace === undefined ? [] : [workspace]), ...toolkits];
    const layers = await Promise.all(references.map(async (reference) => this.resolve(reference)));
    if (new Set(layers.map(({ id }) => id)).size < layers.length) {
      throw new PlatformError("invalid_request", "Cannot stack the same layer twice");
    }
    return layers;
  }

  async resolve(reference: string): Promise<LayerManifest> {
    const named = this.#names.get(reference);
    const id = named !== undefined && named.untilMs > Date.now() ? named.id : reference;
    const known = this.#manifests.get(id);
    if (known !== undefined) return known;
    const manifest = await this.#store.resolve(reference);
    this.#remember(reference, manifest);
    return manifest;
  }

  async list(): Promise<LayerManifest[]> {
    return this.#store.list();
  }

  async importDirectory(
    source: LayerSource,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<LayerManifest> {
    const manifest = await this.#store.importDirectory(source, progress, signal);
    this.#remember(source.name, manifest);
    return manifest;
  }

  #remember(reference: string, manifest: LayerManifest): void {
    if (this.#manifests.size >= manifestsKept || this.#names.size >= manifestsKept) {
      this.#manifests.clear();
      this.#names.clear();
    }
    this.#manifests.set(manifest.id, manifest);
    if (!new RegExp(layerIdPattern).test(reference)) {
      this.#names.set(reference, { id: manifest.id as LayerId, untilMs: Date.now() + namesKeptMs });
    }
  }
}
