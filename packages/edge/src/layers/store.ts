import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type LayerId,
  type LayerKind,
  LayerManifest,
  layerIdOf,
  layerIdPattern,
  layerNamePattern,
  PlatformError,
  randomBase32,
} from "@dsec/contracts";
import { parseJson } from "@dsec/kit";
import { checkLayerTree, digestFile, type FileDigest, packDirectory } from "../host/erofs.ts";

/** A directory of the node that is to become a layer. */
export interface LayerSource {
  readonly kind: LayerKind;
  readonly name: string;
  readonly directory: string;
  /** How the directory was made, for people. */
  readonly provenance: string;
}

export type Progress = (message: string) => void;

const provenanceLengthMax = 65_536;

/**
 * The layer store: a directory on any POSIX file system, shared by any number of writers and readers.
 *
 *     <layerId>/{meta,data,manifest.json}   complete or absent: made beside and renamed
 *     names/<name, percent-encoded>         the layer id that the name stands for now
 *     incoming/                             what is being made
 */
export class LayerStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Makes the directories; does nothing when they are there. */
  async open(): Promise<void> {
    await mkdir(join(this.#root, "names"), { recursive: true, mode: 0o755 });
    await mkdir(join(this.#root, "incoming"), { recursive: true, mode: 0o700 });
  }

  /** The layer that an id or name stands for, or `not_found`. */
  async resolve(reference: string): Promise<LayerManifest> {
    const id = new RegExp(layerIdPattern).test(reference)
      ? (reference as LayerId)
      : await this.#idOfName(reference);
    const manifest = id === undefined ? undefined : await this.#readManifest(id);
    if (manifest === undefined) throw new PlatformError("not_found", `Cannot find layer "${reference}"`);
    return manifest;
  }

  /** Every complete layer, by id. */
  async list(): Promise<LayerManifest[]> {
    const names = (await readdir(this.#root)).filter((name) => new RegExp(layerIdPattern).test(name));
    const manifests = await Promise.all(
      names.toSorted().map(async (name) => await this.#readManifest(name as LayerId)),
    );
    return manifests.filter((manifest) => manifest !== undefined);
  }

  paths(id: string): { readonly meta: string; readonly data: string } {
    return { meta: join(this.#root, id, "meta"), data: join(this.#root, id, "data") };
  }

  /**
   * Packs a directory, puts the layer into the store and lets `name` stand for it. The same content is the same layer, whoever imports it, and how often.
   * A crash leaves at most a directory in incoming/.
   */
  async importDirectory(
    source: LayerSource,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<LayerManifest> {
    if (!new RegExp(layerNamePattern).test(source.name) || new RegExp(layerIdPattern).test(source.name)) {
      throw new PlatformError("invalid_request", `Cannot name a layer "${source.name}"`);
    }
    progress(`packing layer ${source.name}`);
    await checkLayerTree(source.directory, signal);
    const incoming = join(this.#root, "incoming", randomBase32(16));
    await mkdir(incoming, { mode: 0o700 });
    try {
      const paths = { meta: join(incoming, "meta"), data: join(incoming, "data") };
      await packDirectory(source.directory, paths, signal);
      // A tree without content has no data file.
      await (await open(paths.data, "a")).close();
      const [meta, data] = [await digestFile(paths.meta, signal), await digestFile(paths.data, signal)];
      const manifest = manifestOf(source, meta, data);
      await writeFile(join(incoming, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
      await this.#publish(incoming, manifest);
      return manifest;
    } finally {
      await rm(incoming, { recursive: true, force: true });
    }
  }

  async #publish(incoming: string, manifest: LayerManifest): Promise<void> {
    for (const file of ["meta", "data", "manifest.json"]) await sync(join(incoming, file));
    await sync(incoming);
    try {
      await rename(incoming, join(this.#root, manifest.id));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The same content is there already.
      if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    }
    await sync(this.#root);
    const temporary = join(this.#root, "incoming", randomBase32(16));
    await writeFile(temporary, manifest.id, { flush: true });
    await rename(temporary, this.#namePath(manifest.name));
    await sync(join(this.#root, "names"));
  }

  async #idOfName(name: string): Promise<LayerId | undefined> {
    if (!new RegExp(layerNamePattern).test(name)) return undefined;
    return (await readFileIfThere(this.#namePath(name))) as LayerId | undefined;
  }

  async #readManifest(id: LayerId): Promise<LayerManifest | undefined> {
    const text = await readFileIfThere(join(this.#root, id, "manifest.json"));
    return text === undefined ? undefined : parseJson(LayerManifest, text, `manifest of layer ${id}`);
  }

  #namePath(name: string): string {
    return join(this.#root, "names", encodeURIComponent(name));
  }
}

function manifestOf(source: LayerSource, meta: FileDigest, data: FileDigest): LayerManifest {
  const id = layerIdOf(createHash("sha256").update(`${meta.sha256} ${data.sha256}`).digest());
  return {
    formatVersion: 1,
    id,
    kind: source.kind,
    name: source.name,
    metaSha256: meta.sha256,
    metaBytes: meta.bytes,
    dataSha256: data.sha256,
    dataBytes: data.bytes,
    createdAtMs: Date.now(),
    provenance: source.provenance.slice(0, provenanceLengthMax),
  };
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readFileIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
