import { type Static, Type } from "typebox";
import { layerIdPattern } from "./ids.ts";

const strict = { additionalProperties: false } as const;

export const LayerKind = Type.Union([
  Type.Literal("base"),
  Type.Literal("workspace"),
  Type.Literal("toolkit"),
  Type.Literal("diff"),
]);
export type LayerKind = Static<typeof LayerKind>;

const Digest = Type.String({ pattern: "^[0-9a-f]{64}$" });

/**
 * `manifest.json` of a layer in the store. The layer is the EROFS pair `meta` and `data` beside it; its id is made from
 * the sha256 of both files' digests, so the same content is the same layer.
 */
export const LayerManifest = Type.Object(
  {
    formatVersion: Type.Literal(1),
    id: Type.String({ pattern: layerIdPattern }),
    kind: LayerKind,
    name: Type.String({ minLength: 1, maxLength: 256 }),
    metaSha256: Digest,
    metaBytes: Type.Integer({ minimum: 0 }),
    dataSha256: Digest,
    dataBytes: Type.Integer({ minimum: 0 }),
    createdAtMs: Type.Integer({ minimum: 0 }),
    /** How it was made: free text for people, e.g. the package list. */
    provenance: Type.String({ maxLength: 65_536 }),
  },
  strict,
);
export type LayerManifest = Static<typeof LayerManifest>;

/** Names must not look like ids and stay safe in paths. */
export const layerNamePattern = "^[a-z0-9][a-z0-9._@/-]{0,254}$";

/** Body of `POST /v1/layers:import` at the edge's local API: a directory of the node becomes a layer. */
export const ImportLayer = Type.Object(
  {
    kind: LayerKind,
    name: Type.String({ pattern: layerNamePattern }),
    source: Type.Object({ directory: Type.String({ pattern: "^/" }) }, strict),
  },
  strict,
);
export type ImportLayer = Static<typeof ImportLayer>;

export const LayerList = Type.Object({ items: Type.Array(LayerManifest) }, strict);
export type LayerList = Static<typeof LayerList>;
