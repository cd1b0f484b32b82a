import { type Static, Type } from "typebox";
import { nodeIdPattern } from "./ids.ts";
import { Backend, Sandbox } from "./sandboxes.ts";

const strict = { additionalProperties: false } as const;

/** A feature of the fleet or node: asking for one that is not `available` is `unsupported_capability`. */
export const Capability = Type.Object(
  { name: Type.String(), available: Type.Boolean(), reason: Type.Union([Type.String(), Type.Null()]) },
  strict,
);
export type Capability = Static<typeof Capability>;
export const CapabilityList = Type.Object({ items: Type.Array(Capability) }, strict);
export type CapabilityList = Static<typeof CapabilityList>;

/** What an edge measured just now. */
export const NodeLoad = Type.Object(
  {
    sandboxes: Type.Integer({ minimum: 0 }),
    creating: Type.Integer({ minimum: 0 }),
    sandboxesMax: Type.Integer({ minimum: 0 }),
    cpuCores: Type.Integer({ minimum: 1 }),
    memoryTotalMib: Type.Integer({ minimum: 0 }),
    memoryAvailableMib: Type.Integer({ minimum: 0 }),
    /** PSI "some avg10", percent. */
    memoryPressure: Type.Number({ minimum: 0 }),
    cpuPressure: Type.Number({ minimum: 0 }),
    diskFreeMib: Type.Integer({ minimum: 0 }),
    admitting: Type.Boolean(),
  },
  strict,
);
export type NodeLoad = Static<typeof NodeLoad>;

/** `POST /v1/nodes:join`, no key: the one-time or reusable token authorizes. `csr` is a PEM certificate request. */
export const JoinNode = Type.Object(
  {
    token: Type.String({ maxLength: 512 }),
    /** Set by an edge that joined before and kept its id. */
    nodeId: Type.Optional(Type.String({ pattern: nodeIdPattern })),
    hostname: Type.String({ minLength: 1, maxLength: 253 }),
    /** Where control reaches this edge: https://host:port */
    url: Type.String({ pattern: "^https?://", maxLength: 512 }),
    backends: Type.Array(Backend, { maxItems: 4 }),
    capabilities: Type.Array(Capability, { maxItems: 64 }),
    csr: Type.String({ maxLength: 16_384 }),
  },
  strict,
);
export type JoinNode = Static<typeof JoinNode>;

export const JoinedNode = Type.Object(
  {
    nodeId: Type.String({ pattern: nodeIdPattern }),
    /** PEM. The edge serves with `certificate` and trusts clients of `authority`. */
    certificate: Type.String(),
    authority: Type.String(),
    /** Ed25519 public key (SPKI, PEM) that signs claims. */
    claimKey: Type.String(),
    controls: Type.Array(Type.String()),
  },
  strict,
);
export type JoinedNode = Static<typeof JoinedNode>;

/** `POST /v1/nodes/{id}/heartbeat` over mTLS, every limits.heartbeatPeriodMs. */
export const Heartbeat = Type.Object(
  {
    nodeId: Type.String({ pattern: nodeIdPattern }),
    /** Random per edge process: a change means a restart. */
    bootId: Type.String({ minLength: 8, maxLength: 64 }),
    sequence: Type.Integer({ minimum: 0 }),
    url: Type.String({ pattern: "^https?://", maxLength: 512 }),
    /** A unix socket with the same API, for control instances on the edge's own machine. */
    localSocket: Type.Optional(Type.String({ pattern: "^/", maxLength: 107 })),
    load: NodeLoad,
    backends: Type.Array(Backend, { maxItems: 4 }),
    capabilities: Type.Array(Capability, { maxItems: 64 }),
  },
  strict,
);
export type Heartbeat = Static<typeof Heartbeat>;
export const HeartbeatAnswer = Type.Object({ controls: Type.Array(Type.String()) }, strict);
export type HeartbeatAnswer = Static<typeof HeartbeatAnswer>;

export const NodeHealth = Type.Union([
  Type.Literal("healthy"),
  Type.Literal("suspect"),
  Type.Literal("lost"),
]);
export type NodeHealth = Static<typeof NodeHealth>;

export const NodeView = Type.Object(
  {
    id: Type.String({ pattern: nodeIdPattern }),
    hostname: Type.String(),
    url: Type.String(),
    health: NodeHealth,
    lastHeartbeatAtMs: Type.Union([Type.Integer(), Type.Null()]),
    load: Type.Union([NodeLoad, Type.Null()]),
    backends: Type.Array(Backend),
    capabilities: Type.Array(Capability),
  },
  strict,
);
export type NodeView = Static<typeof NodeView>;
export const NodeList = Type.Object({ items: Type.Array(NodeView) }, strict);
export type NodeList = Static<typeof NodeList>;

/** `POST /v1/join-tokens` (admin): `token` carries the authority's fingerprint; it expires. */
export const JoinToken = Type.Object({ token: Type.String(), expiresAtMs: Type.Integer() }, strict);
export type JoinToken = Static<typeof JoinToken>;

/** Answer of the edge's `GET /v1/idempotency/{key}`: the sandbox made under the key, with the digest of its request. */
export const IdempotencyRecord = Type.Object({ requestDigest: Type.String(), sandbox: Sandbox }, strict);
export type IdempotencyRecord = Static<typeof IdempotencyRecord>;

/** File name of an edge's local socket: control takes no other, and only one that root owns. */
export function localSocketName(nodeId: string): string {
  return `edge-${nodeId}.sock`;
}
