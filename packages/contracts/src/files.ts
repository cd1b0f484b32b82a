import { type Static, Type } from "typebox";
import { limits } from "./limits.ts";

const strict = { additionalProperties: false } as const;
const Path = Type.String({ minLength: 1, maxLength: limits.pathLengthMax, pattern: "^/" });
/** In a query a user is a name or `uid:gid`. */
const UserText = Type.String({ minLength: 1, maxLength: 64 });

export const FileStat = Type.Object(
  {
    name: Type.String(),
    nameBase64: Type.Optional(Type.String()),
    path: Type.String(),
    kind: Type.Union([
      Type.Literal("file"),
      Type.Literal("directory"),
      Type.Literal("symlink"),
      Type.Literal("fifo"),
      Type.Literal("socket"),
      Type.Literal("device"),
    ]),
    sizeBytes: Type.Integer(),
    mode: Type.Integer(),
    uid: Type.Integer(),
    gid: Type.Integer(),
    mtimeMs: Type.Integer(),
    target: Type.Union([Type.String(), Type.Null()]),
  },
  strict,
);
export type FileStat = Static<typeof FileStat>;

/** `GET …/files`: the bytes, `application/octet-stream`. */
export const ReadFile = Type.Object(
  {
    path: Path,
    user: Type.Optional(UserText),
    offset: Type.Integer({ minimum: 0, default: 0 }),
    length: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  strict,
);
export type ReadFile = Static<typeof ReadFile>;

/** `PUT …/files`: body is the content; atomic. `mode` in octal text. Answers FileStat. */
export const WriteFile = Type.Object(
  {
    path: Path,
    user: Type.Optional(UserText),
    mode: Type.String({ pattern: "^[0-7]{3,4}$", default: "644" }),
    makeParents: Type.Boolean({ default: true }),
  },
  strict,
);
export type WriteFile = Static<typeof WriteFile>;

/** `GET …/files/stat` */
export const StatFile = Type.Object(
  { path: Path, user: Type.Optional(UserText), follow: Type.Boolean({ default: true }) },
  strict,
);
export type StatFile = Static<typeof StatFile>;

/** `GET …/files/list`: one directory. */
export const ListFiles = Type.Object(
  {
    path: Path,
    user: Type.Optional(UserText),
    entriesMax: Type.Integer({ minimum: 1, maximum: limits.fileListEntriesMax, default: 10_000 }),
  },
  strict,
);
export type ListFiles = Static<typeof ListFiles>;

export const FileListing = Type.Object({ items: Type.Array(FileStat), truncated: Type.Boolean() }, strict);
export type FileListing = Static<typeof FileListing>;

/** `DELETE …/files`: answers 204. */
export const RemoveFile = Type.Object(
  { path: Path, user: Type.Optional(UserText), recursive: Type.Boolean({ default: false }) },
  strict,
);
export type RemoveFile = Static<typeof RemoveFile>;
