import type {
  EnvironmentVariables,
  ExecInput,
  ExecResult,
  InlineOutput,
  Outcome,
  StartCommandInput,
  User,
} from "@dsec/contracts";
import { limits, randomBase32 } from "@dsec/contracts";
import type { Static } from "typebox";
import { fromBase64, toBase64 } from "./bytes.ts";
import type { CallOptions } from "./transport.ts";

/** A program with its arguments, or text for the sandbox's shell. */
export type CommandLine = readonly string[] | string;

/** How a command is run. Times in milliseconds. */
export interface CommandOptions extends Pick<CallOptions, "signal"> {
  readonly cwd?: string;
  readonly env?: Static<typeof EnvironmentVariables>;
  readonly user?: User;
  /** Ends the command with its whole tree; 600,000 when not given. The call itself waits a little longer. */
  readonly timeoutMs?: number;
  readonly stdin?: string | Uint8Array;
  readonly noNewPrivs?: boolean;
  /** Kill what the command left running when its first process ends. */
  readonly endTree?: boolean;
  /** A detached command does not keep the sandbox from idling. */
  readonly detached?: boolean;
  /** Same id, same sandbox: same answer, never a second execution. Made here when not given. */
  readonly actionId?: string;
}

export interface ExecOptions extends CommandOptions {
  /** Of each stream; 1 MiB when not given. */
  readonly outputBytesMax?: number;
}

/** What came of a command that has ended. */
export interface CommandResult {
  readonly commandId: string;
  /** Null when a signal or a limit ended it; `outcome` says which. */
  readonly exitCode: number | null;
  /** Ended by itself with exit code 0. */
  readonly ok: boolean;
  /** As UTF-8; what is no UTF-8 is replaced. */
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;
  /** A stream had more than `outputBytesMax`. */
  readonly truncated: boolean;
  readonly outcome: Outcome;
}

/** The body of a command's start; `actionId` is always set, so that a repeated call never runs it twice. */
export function commandBody(command: CommandLine, options: CommandOptions): StartCommandInput {
  const { signal: _, stdin, ...rest } = options;
  return {
    actionId: newActionId(),
    ...rest,
    ...(typeof command === "string" ? { shell: command } : { argv: [...command] }),
    ...(typeof stdin === "string" ? { stdin } : {}),
    ...(stdin instanceof Uint8Array ? { stdinBase64: toBase64(stdin) } : {}),
  };
}

export function execBody(command: CommandLine, options: ExecOptions): ExecInput {
  return commandBody(command, options);
}

/** How long a call may wait for a command's end: its own limit and some room for the platform. */
export function execCallTimeoutMs(options: CommandOptions): number {
  return (options.timeoutMs ?? limits.commandTimeoutMsDefault) + 60_000;
}

export function resultOf(answer: ExecResult): CommandResult {
  const { command, outcome, stdout, stderr } = answer;
  return {
    commandId: command.commandId,
    exitCode: outcome.exitCode,
    ok: outcome.exitCode === 0,
    stdout: textOf(stdout),
    stderr: textOf(stderr),
    get stdoutBytes() {
      return bytesOf(stdout);
    },
    get stderrBytes() {
      return bytesOf(stderr);
    },
    truncated: stdout.truncated || stderr.truncated,
    outcome,
  };
}

function newActionId(): string {
  return `a${randomBase32(25)}`;
}

function textOf(output: InlineOutput): string {
  return output.encoding === "utf8" ? output.data : new TextDecoder().decode(fromBase64(output.data));
}

function bytesOf(output: InlineOutput): Uint8Array {
  return output.encoding === "utf8" ? new TextEncoder().encode(output.data) : fromBase64(output.data);
}
