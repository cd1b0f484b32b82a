import { type Static, Type } from "typebox";
import { Cause, Failure } from "./failures.ts";
import { commandIdPattern } from "./ids.ts";
import { limits } from "./limits.ts";
import { EnvironmentVariables, User } from "./sandboxes.ts";

const strict = { additionalProperties: false } as const;
const NullableInteger = Type.Union([Type.Integer(), Type.Null()]);

export const ActionId = Type.String({ pattern: "^[A-Za-z0-9._:-]{1,128}$" });

const commandFields = {
  /** Same id, same sandbox: same answer, never a second execution. Made by the SDK when the caller gives none. */
  actionId: Type.Optional(ActionId),
  /** Exactly one of `argv` and `shell`. `shell` runs as `/bin/sh -c` (bash where the image has it). */
  argv: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: limits.argumentsMax })),
  shell: Type.Optional(Type.String({ minLength: 1, maxLength: limits.commandBytesMax })),
  cwd: Type.Optional(Type.String({ minLength: 1, maxLength: limits.pathLengthMax })),
  env: Type.Optional(EnvironmentVariables),
  user: Type.Optional(User),
  timeoutMs: Type.Integer({
    minimum: 1,
    maximum: limits.commandTimeoutMsMax,
    default: limits.commandTimeoutMsDefault,
  }),
  noNewPrivs: Type.Boolean({ default: false }),
  /** Kill what the command left running when its first process ends. */
  endTree: Type.Boolean({ default: false }),
  /** A detached command does not keep the sandbox from idling. */
  detached: Type.Boolean({ default: false }),
  /** What the command reads, then end of file: `stdin` is text, `stdinBase64` bytes; at most one of both. */
  stdin: Type.Optional(Type.String({ maxLength: limits.stdinBytesMax })),
  stdinBase64: Type.Optional(Type.String({ maxLength: 1_400_000 })),
} as const;

/** `POST …/commands`: answers at once; ends and output arrive on the event stream. */
export const StartCommand = Type.Object(commandFields, strict);
export type StartCommand = Static<typeof StartCommand>;

/** `POST …/exec`: waits for the end. */
export const Exec = Type.Object(
  {
    ...commandFields,
    outputBytesMax: Type.Integer({
      minimum: 0,
      maximum: limits.inlineOutputBytesMax,
      default: limits.inlineOutputBytesDefault,
    }),
  },
  strict,
);
export type Exec = Static<typeof Exec>;
export type StartCommandInput = Partial<StartCommand>;
export type ExecInput = Partial<Exec>;

export const StreamTotals = Type.Object({ bytes: Type.Integer(), dropped: Type.Integer() }, strict);

/** How a command ended, as facts and as blame. */
export const Outcome = Type.Object(
  {
    exitCode: NullableInteger,
    signal: NullableInteger,
    cause: Cause,
    failure: Failure,
    message: Type.Union([Type.String(), Type.Null()]),
    startedAtMs: Type.Integer(),
    endedAtMs: Type.Integer(),
    cpuMs: NullableInteger,
    stdout: StreamTotals,
    stderr: StreamTotals,
    /** Processes of the command were alive when its first process had ended. */
    leftRunning: Type.Boolean(),
  },
  strict,
);
export type Outcome = Static<typeof Outcome>;

export const Command = Type.Object(
  {
    commandId: Type.String({ pattern: commandIdPattern }),
    actionId: ActionId,
    /** True when this call started nothing and attached to an earlier one of the same actionId. */
    replay: Type.Boolean(),
    state: Type.Union([Type.Literal("running"), Type.Literal("ended")]),
    startedAtMs: Type.Integer(),
    outcome: Type.Union([Outcome, Type.Null()]),
  },
  strict,
);
export type Command = Static<typeof Command>;

export const CommandList = Type.Object({ items: Type.Array(Command) }, strict);
export type CommandList = Static<typeof CommandList>;

/** Output inline: text when it is UTF-8, base64 otherwise. `truncated`: more than `outputBytesMax` was kept or written. */
export const InlineOutput = Type.Object(
  {
    encoding: Type.Union([Type.Literal("utf8"), Type.Literal("base64")]),
    data: Type.String(),
    truncated: Type.Boolean(),
  },
  strict,
);
export type InlineOutput = Static<typeof InlineOutput>;

export const ExecResult = Type.Object(
  { command: Command, outcome: Outcome, stdout: InlineOutput, stderr: InlineOutput },
  strict,
);
export type ExecResult = Static<typeof ExecResult>;

/** `tree` with signal 9 ends everything that the command left. */
export const SignalCommand = Type.Object(
  { signal: Type.Integer({ minimum: 1, maximum: 31 }), tree: Type.Boolean({ default: false }) },
  strict,
);
export type SignalCommand = Static<typeof SignalCommand>;

export const OutputStream = Type.Union([Type.Literal("stdout"), Type.Literal("stderr")]);
export type OutputStream = Static<typeof OutputStream>;

/**
 * Query of `GET …/commands/{id}/output`: bytes from `offset` (counted from the start of the stream) to the end of what is stored;
 * headers `dsec-offset` (of the first byte sent), `dsec-next-offset`, `dsec-dropped`, `dsec-ended`.
 */
export const ReadOutput = Type.Object(
  { stream: OutputStream, offset: Type.Integer({ minimum: 0, default: 0 }) },
  strict,
);
export type ReadOutput = Static<typeof ReadOutput>;
