import { type Static, Type } from "typebox";
import { Failure } from "./failures.ts";
import { sandboxIdPattern } from "./ids.ts";
import { limits } from "./limits.ts";

const strict = { additionalProperties: false } as const;
const Name = Type.String({ minLength: 1, maxLength: limits.labelLengthMax });
const Time = Type.Integer({ minimum: 0, description: "Milliseconds since the epoch." });

export const Backend = Type.Union([
  Type.Literal("container"),
  Type.Literal("microvm"),
  Type.Literal("fullvm"),
  Type.Literal("fncall"),
]);
export type Backend = Static<typeof Backend>;

/** Layers by name (`default`, `mytask@3`) or layer id. Lowest: base; then workspace; toolkits on top, in order. */
export const Environment = Type.Object(
  {
    base: Type.String({ minLength: 1, maxLength: 256, default: "default" }),
    workspace: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    toolkits: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      maxItems: limits.toolkitsMax,
      default: [],
    }),
  },
  strict,
);
export type Environment = Static<typeof Environment>;

/** A name of the sandbox's /etc/passwd, or ids. */
export const User = Type.Union([
  Type.String({ minLength: 1, maxLength: 64 }),
  Type.Object(
    {
      uid: Type.Integer({ minimum: 0, maximum: 65_535 }),
      gid: Type.Integer({ minimum: 0, maximum: 65_535 }),
    },
    strict,
  ),
]);
export type User = Static<typeof User>;

export const EnvironmentVariables = Type.Record(
  Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,255}$" }),
  Type.String({ maxLength: 131_072 }),
  { maxProperties: limits.environmentVariablesMax },
);

export const Labels = Type.Record(Type.String({ pattern: "^[A-Za-z0-9._/-]{1,128}$" }), Name, {
  maxProperties: limits.labelsMax,
});

export const CreateSandbox = Type.Object(
  {
    backend: Type.Optional(Backend),
    environment: Type.Optional(Type.Partial(Environment)),
    cpuCores: Type.Number({ exclusiveMinimum: 0, maximum: limits.cpuCoresMax, default: 1 }),
    memoryMib: Type.Integer({ minimum: limits.memoryMibMin, maximum: limits.memoryMibMax, default: 1024 }),
    diskMib: Type.Integer({ minimum: 1, maximum: limits.diskMibMax, default: 10_240 }),
    pidsMax: Type.Integer({ minimum: 8, maximum: limits.pidsMax, default: 1024 }),
    idleTimeoutMs: Type.Integer({
      minimum: 1_000,
      maximum: limits.lifetimeMsMax,
      default: limits.idleTimeoutMsDefault,
      description:
        "Ends the sandbox after this long without a request, foreground command, stream or port connection.",
    }),
    maxLifetimeMs: Type.Optional(Type.Integer({ minimum: 1_000, maximum: limits.lifetimeMsMax })),
    network: Type.Optional(Type.Literal("none")),
    user: Type.Optional(User),
    env: Type.Optional(EnvironmentVariables),
    labels: Type.Optional(Labels),
    job: Type.Optional(Name),
  },
  strict,
);
/** What a caller sends: every field optional. */
export type CreateSandboxInput = Partial<Static<typeof CreateSandbox>>;
/** After validation: defaults filled in. */
export type CreateSandbox = Static<typeof CreateSandbox>;

export const SandboxState = Type.Union([
  Type.Literal("creating"),
  Type.Literal("running"),
  Type.Literal("paused"),
  Type.Literal("stopping"),
  Type.Literal("stopped"),
  Type.Literal("failed"),
]);
export type SandboxState = Static<typeof SandboxState>;

export const Sandbox = Type.Object(
  {
    id: Type.String({ pattern: sandboxIdPattern }),
    project: Type.String(),
    node: Type.String(),
    backend: Backend,
    state: SandboxState,
    /** Why it ended; null while it lives and after a plain stop. */
    end: Type.Union([Failure, Type.Null()]),
    message: Type.Union([Type.String(), Type.Null()]),
    environment: Environment,
    cpuCores: Type.Number(),
    memoryMib: Type.Integer(),
    diskMib: Type.Integer(),
    pidsMax: Type.Integer(),
    user: User,
    labels: Labels,
    job: Type.Union([Type.String(), Type.Null()]),
    idleTimeoutMs: Type.Integer(),
    createdAtMs: Time,
    /** When idle or life time would end it, as things stand. */
    idleExpiresAtMs: Type.Union([Time, Type.Null()]),
    lifetimeExpiresAtMs: Type.Union([Time, Type.Null()]),
    endedAtMs: Type.Union([Time, Type.Null()]),
  },
  strict,
);
export type Sandbox = Static<typeof Sandbox>;

export const SandboxPage = Type.Object(
  { items: Type.Array(Sandbox), next: Type.Union([Type.String(), Type.Null()]) },
  strict,
);
export type SandboxPage = Static<typeof SandboxPage>;

/** Query of a list. `label` is `key=value`; several must all match. `cursor` is the `next` of the page before. */
export const ListSandboxes = Type.Object(
  {
    state: Type.Optional(SandboxState),
    label: Type.Optional(
      Type.Array(Type.String({ maxLength: 2 * limits.labelLengthMax + 1 }), { maxItems: limits.labelsMax }),
    ),
    job: Type.Optional(Name),
    limit: Type.Integer({ minimum: 1, maximum: limits.listPageMax, default: 100 }),
    cursor: Type.Optional(Type.String({ maxLength: 256 })),
  },
  strict,
);
export type ListSandboxes = Static<typeof ListSandboxes>;

/** `extendMs` moves the end of life to at least now + extendMs; the other fields replace the limits. */
export const SetLifetime = Type.Object(
  {
    idleTimeoutMs: Type.Optional(Type.Integer({ minimum: 1_000, maximum: limits.lifetimeMsMax })),
    maxLifetimeMs: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1_000, maximum: limits.lifetimeMsMax }), Type.Null()]),
    ),
    extendMs: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.lifetimeMsMax })),
  },
  strict,
);
export type SetLifetime = Static<typeof SetLifetime>;

/** `count` copies of `template`. The answer is NDJSON of BatchLine, one line as each becomes usable or fails. */
export const BatchCreate = Type.Object(
  {
    count: Type.Integer({ minimum: 1, maximum: limits.batchSandboxesMax }),
    template: CreateSandbox,
  },
  strict,
);
export type BatchCreate = Static<typeof BatchCreate>;
