import { FileStat } from "@dsec/contracts";
import { type Static, type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { WireError } from "./frames.ts";

/** Answers of chronus as they are on the wire (PROTOCOL.md, sections 5 and 6), each checked once where it arrives. */
const strict = { additionalProperties: false } as const;
const Count = Type.Integer({ minimum: 0 });
const NullableInteger = Type.Union([Type.Integer(), Type.Null()]);
const Text = Type.String({ maxLength: 1_024 });
const CommandIdText = Type.String({ pattern: "^c[0-9a-f]{12}$" });
const StreamCount = Type.Object({ bytes: Count, dropped: Count }, strict);

const NativeOutcome = Type.Object(
  {
    commandId: CommandIdText,
    actionId: Type.String({ maxLength: 128 }),
    exitCode: NullableInteger,
    signal: NullableInteger,
    cause: Type.Union([
      Type.Literal("exit"),
      Type.Literal("signal"),
      Type.Literal("timeout"),
      Type.Literal("oom"),
      Type.Literal("killed"),
      Type.Literal("agent_killed"),
      Type.Literal("start_failed"),
    ]),
    message: Type.Union([Text, Type.Null()]),
    startedAtMs: Count,
    endedAtMs: Count,
    cpuMs: Count,
    peakMemoryBytes: Type.Union([Count, Type.Null()]),
    stdout: StreamCount,
    stderr: StreamCount,
    leftRunning: Type.Boolean(),
  },
  strict,
);
/** How a command ended, in the words of init. */
export type NativeOutcome = Static<typeof NativeOutcome>;

const NativeCommand = Type.Object(
  {
    commandId: CommandIdText,
    actionId: Type.String({ maxLength: 128 }),
    running: Type.Boolean(),
    startedAtMs: Count,
    outcome: Type.Union([NativeOutcome, Type.Null()]),
  },
  strict,
);
export type NativeCommand = Static<typeof NativeCommand>;

const ExecAccepted = Type.Object({ commandId: CommandIdText, replay: Type.Boolean() }, strict);
export type ExecAccepted = Static<typeof ExecAccepted>;

const InitEnded = Type.Object(
  {
    event: Type.Literal("init_ended"),
    sandboxId: Type.String({ maxLength: 64 }),
    pid: Type.Integer({ minimum: 1 }),
    exitCode: NullableInteger,
    signal: NullableInteger,
  },
  strict,
);
/** An init ended while the spawner was its parent. */
export type InitEnded = Static<typeof InitEnded>;

const CreateAnswer = Type.Object({ pid: Type.Integer({ minimum: 2 }), startTime: Count }, strict);
export type CreateAnswer = Static<typeof CreateAnswer>;

/** Parses with a compiled schema; throws WireError that names `what`. */
function parser<Schema extends TSchema>(schema: Schema, what: string): (value: unknown) => Static<Schema> {
  const validator = Compile(schema);
  return (value) => {
    if (!validator.Check(value)) throw new WireError(`${what} is malformed`);
    return value as Static<Schema>;
  };
}

export const parseOutcome = parser(NativeOutcome, "An outcome");
export const parseExecAccepted = parser(ExecAccepted, "The ACCEPT of a command");
export const parseCommands = parser(
  Type.Object({ commands: Type.Array(NativeCommand) }, strict),
  "The list of commands",
);
export const parseCommandEnded = parser(
  Type.Object({ event: Type.Literal("command_ended"), outcome: NativeOutcome }, strict),
  "The end of a command",
);
export const parseInitEnded = parser(InitEnded, "The end of an init");
export const parseCreateAnswer = parser(CreateAnswer, "The answer of create");
export const parseMountAnswer = parser(
  Type.Object({ mounted: Type.Boolean() }, strict),
  "The answer of mount_layer",
);
export const parseLayers = parser(
  Type.Object({ layers: Type.Array(Type.String({ maxLength: 64 })) }, strict),
  "The list of layers",
);
export const parseStatAnswer = parser(Type.Object({ stat: FileStat }, strict), "A stat");
export const parseStat = parser(FileStat, "A stat");
export const parseTruncated = parser(
  Type.Object({ truncated: Type.Boolean() }, strict),
  "The end of a listing",
);
