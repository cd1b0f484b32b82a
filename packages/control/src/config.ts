import { limits } from "@dsec/contracts";
import { type Static, Type } from "typebox";

/** Settings of a control instance. */
export const ControlConfig = Type.Object(
  {
    /** Where the store, the authority and the claim key live; mode 0700. */
    dataDir: Type.String({ default: "/var/lib/dsec/control" }),
    /** `postgres://…`: keeps the store there instead, shared by several instances. */
    postgresUrl: Type.Optional(Type.String({ pattern: "^postgres(ql)?://" })),
    /** Serves the public API over TLS. PEM files. */
    tls: Type.Optional(
      Type.Object(
        { certificateFile: Type.String(), keyFile: Type.String() },
        { additionalProperties: false },
      ),
    ),
    /** The public API. Port 0 takes a free one. */
    listen: Type.Object(
      {
        host: Type.String({ default: "127.0.0.1" }),
        port: Type.Integer({ minimum: 0, maximum: 65_535, default: 7070 }),
      },
      { additionalProperties: false, default: {} },
    ),
    /** Joins and heartbeats of edges, over TLS of the platform's own authority. */
    clusterListen: Type.Object(
      {
        host: Type.String({ default: "127.0.0.1" }),
        port: Type.Integer({ minimum: 0, maximum: 65_535, default: 7071 }),
      },
      { additionalProperties: false, default: {} },
    ),
    /** Host names and addresses of the cluster listener, for its certificate. */
    clusterHosts: Type.Array(Type.String(), { default: ["127.0.0.1", "localhost"] }),
    /** The first admin key is written here (mode 0600) instead of printed. */
    bootstrapKeyFile: Type.Optional(Type.String()),
    /** Candidates that a creation compares at a time: k of "power of k choices". */
    placementCandidates: Type.Integer({ minimum: 1, maximum: 16, default: 3 }),
    /** Rounds of k candidates before `no_capacity`. */
    placementRoundsMax: Type.Integer({ minimum: 1, maximum: 64, default: 4 }),
    /** Creations of one batch under way on each node. */
    batchPerNode: Type.Integer({ minimum: 1, maximum: 1_024, default: 16 }),
    /** How long a revoked key may still be accepted. */
    keyCacheMs: Type.Integer({ minimum: 0, maximum: 60_000, default: 2_000 }),
    /** How often an event stream says that it lives, and checks its edges and key. */
    streamKeepAliveMs: Type.Integer({ minimum: 10, maximum: 60_000, default: limits.streamKeepAliveMs }),
    logLevel: Type.String({ default: "info" }),
    logFile: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export type ControlConfig = Static<typeof ControlConfig>;
