import { stat } from "node:fs/promises";
import { type LayerManifest, PlatformError } from "@dsec/contracts";

/** What mounts layers in the node's nursery: the spawner. */
export interface LayerMounter {
  /** Resolves when the layer is mounted, whether by this call or before. */
  mountLayer(layerId: string, metaPath: string, dataPath: string | null): Promise<void>;
  unmountLayer(layerId: string): Promise<void>;
  listLayers(): Promise<readonly string[]>;
}

/** Mounted layers that a sandbox stacks, lowest first; given back when it is disposed. */
export interface LayerReference extends AsyncDisposable {
  readonly layerIds: readonly string[];
}

interface Mount {
  references: number;
  readonly ready: Promise<void>;
  idleSince: number;
}

export interface LayerMountsOptions {
  readonly mounter: LayerMounter;
  readonly paths: (layerId: string) => { readonly meta: string; readonly data: string };
  /** Mounts that stay although no sandbox uses them; beyond, the longest idle goes. */
  readonly idleMountsMax: number;
  /** Called once for each layer that was newly mounted; not waited for. */
  readonly mounted?: (layer: LayerManifest) => void;
}

/**
 * One mount a layer for the whole node, counted by the sandboxes that use it: two mounts of the same image would not share
 * page cache. Mounts survive the edge; `recover` takes them over.
 */
export class LayerMounts {
  readonly #options: LayerMountsOptions;
  readonly #mounts = new Map<string, Mount>();
  #clock = 0;

  constructor(options: LayerMountsOptions) {
    this.#options = options;
  }

  /** Knows the layers that were mounted before, unused so far. */
  async recover(): Promise<void> {
    for (const id of await this.#options.mounter.listLayers()) this.#enter(id, Promise.resolve());
  }

  /** Mounts what is not mounted yet. Fails as a whole: nothing stays referenced then. */
  async acquire(layers: readonly LayerManifest[]): Promise<LayerReference> {
    const ids = layers.map((layer) => layer.id);
    for (const layer of layers) this.#take(layer);
    let held = true;
    const giveBack = async (): Promise<void> => {
      if (!held) return;
      held = false;
      for (const id of ids) this.#release(id);
      await this.#evict();
    };
    try {
      await Promise.all(ids.map(async (id) => await this.#mounts.get(id)?.ready));
    } catch (error) {
      await giveBack();
      throw error;
    }
    return { layerIds: ids, [Symbol.asyncDispose]: giveBack };
  }

  #take(layer: LayerManifest): void {
    const mount = this.#mounts.get(layer.id) ?? this.#enter(layer.id, this.#mount(layer));
    mount.references += 1;
  }

  #enter(id: string, ready: Promise<void>): Mount {
    const mount: Mount = { references: 0, ready, idleSince: this.#clock };
    this.#mounts.set(id, mount);
    ready.catch(() => {
      if (this.#mounts.get(id) === mount) this.#mounts.delete(id);
    });
    return mount;
  }

  async #mount(layer: LayerManifest): Promise<void> {
    const paths = this.#options.paths(layer.id);
    // The kernel mounts a truncated pair without a word, and reads fail later.
    await expectSize(paths.meta, layer.metaBytes);
    await expectSize(paths.data, layer.dataBytes);
    await this.#options.mounter.mountLayer(layer.id, paths.meta, layer.dataBytes === 0 ? null : paths.data);
    this.#options.mounted?.(layer);
  }

  #release(id: string): void {
    const mount = this.#mounts.get(id);
    if (mount === undefined) return;
    mount.references -= 1;
    this.#clock += 1;
    mount.idleSince = this.#clock;
  }

  async #evict(): Promise<void> {
    const idle = [...this.#mounts].filter(([, mount]) => mount.references === 0);
    const excess = idle.length - this.#options.idleMountsMax;
    if (excess <= 0) return;
    const oldest = idle.toSorted(([, one], [, two]) => one.idleSince - two.idleSince).slice(0, excess);
    for (const [id] of oldest) this.#mounts.delete(id);
    for (const [id] of oldest) {
      // Taken again meanwhile: it stays.
      if (!this.#mounts.has(id)) await this.#options.mounter.unmountLayer(id);
    }
  }
}

async function expectSize(path: string, bytes: number): Promise<void> {
  const { size } = await stat(path);
  if (size !== bytes) {
    throw new PlatformError("internal", "Cannot mount a layer: a file in the store is truncated", {
      cause: new Error(`${path} has ${size} bytes instead of ${bytes}`),
    });
  }
}
