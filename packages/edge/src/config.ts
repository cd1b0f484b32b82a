import { type Static, Type } from "typebox";

const strict = { additionalProperties: false } as const;

/** Settings of an edge. One edge a data directory; several may run on one machine with different ones. */
export const EdgeConfig = Type.Object(
  {
    /** Holds edge/ (membership, and by node: ledger, sandboxes), layers/ unless `layersDir` says otherwise, build/. */
    dataDir: Type.String({ default: "/var/lib/dsec", pattern: "^/" }),
    /** Sockets and pinned namespaces, by node; on a file system that does not outlive a reboot. */
    runDir: Type.String({ default: "/run/dsec", pattern: "^/" }),
    /** The layer store when it is not layers/ of the data directory: may be shared with other edges, of other machines too. */
    layersDir: Type.Optional(Type.String({ pattern: "^/" })),
    /** The chronus program; the repository's own release build when absent. */
    chronusPath: Type.Optional(Type.String({ pattern: "^/" })),
    /** Where control reaches this edge. Port 0 takes a free one. */
    listen: Type.Object(
      {
        host: Type.String({ default: "127.0.0.1" }),
        port: Type.Integer({ minimum: 0, maximum: 65_535, default: 0 }),
      },
      { ...strict, default: {} },
    ),
    /** In the place of the listening host, for control instances on other machines. */
    advertisedHost: Type.Optional(Type.String({ maxLength: 253 })),
    /** Needed until the edge has joined: the cluster URL of any control instance, and a token. */
    join: Type.Optional(
      Type.Object({ url: Type.String({ pattern: "^https://" }), token: Type.String() }, strict),
    ),
    /** Build the default base layer, when the store has none, before the edge is ready. */
    ensureDefaultBase: Type.Boolean({ default: true }),
    /** Read into the page cache of each layer that is mounted, from its beginning: what a sandbox reads first would go with it. */
    layerReadAheadMib: Type.Integer({ minimum: 0, default: 1_024 }),
    sandboxesMax: Type.Integer({ minimum: 0, default: 3_000 }),
    /** Creations under way at once. */
    creationsMax: Type.Integer({ minimum: 1, default: 64 }),
    /** Kept free of new sandboxes. */
    memoryReserveMib: Type.Integer({ minimum: 0, default: 512 }),
    diskReserveMib: Type.Integer({ minimum: 0, default: 1_024 }),
    /** PSI "some avg10" of memory beyond which no sandbox is taken, percent. */
    memoryPressureMax: Type.Number({ minimum: 0, default: 20 }),
    logLevel: Type.String({ default: "info" }),
    logFile: Type.Optional(Type.String()),
  },
  strict,
);
export type EdgeConfig = Static<typeof EdgeConfig>;
