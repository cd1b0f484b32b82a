import { type Static, Type } from "typebox";

const strict = { additionalProperties: false } as const;
const Name = Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._ -]{0,127}$" });

export const Project = Type.Object({ id: Type.String(), name: Name, createdAtMs: Type.Integer() }, strict);
export type Project = Static<typeof Project>;
export const CreateProject = Type.Object({ name: Name }, strict);
export type CreateProject = Static<typeof CreateProject>;
export const ProjectList = Type.Object({ items: Type.Array(Project) }, strict);
export type ProjectList = Static<typeof ProjectList>;

/** `admin` keys manage projects, keys and nodes of the whole platform; `member` keys use one project's sandboxes. */
export const KeyRole = Type.Union([Type.Literal("admin"), Type.Literal("member")]);
export type KeyRole = Static<typeof KeyRole>;

export const ApiKey = Type.Object(
  {
    id: Type.String(),
    project: Type.String(),
    name: Name,
    role: KeyRole,
    createdAtMs: Type.Integer(),
    revokedAtMs: Type.Union([Type.Integer(), Type.Null()]),
  },
  strict,
);
export type ApiKey = Static<typeof ApiKey>;
export const CreateKey = Type.Object(
  { project: Type.String({ maxLength: 64 }), name: Name, role: Type.Optional(KeyRole) },
  strict,
);
export type CreateKey = Static<typeof CreateKey>;
/** `secret` (`dsec_` + key id + `_` + 43 base64url characters) is shown here once and stored only as a hash. */
export const CreatedKey = Type.Object({ key: ApiKey, secret: Type.String() }, strict);
export type CreatedKey = Static<typeof CreatedKey>;
export const KeyList = Type.Object({ items: Type.Array(ApiKey) }, strict);
export type KeyList = Static<typeof KeyList>;
