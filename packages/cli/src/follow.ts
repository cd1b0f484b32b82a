import { limits } from "@dsec/contracts";
import { type Command, type CommandOptions, DsecError, type Outcome, type Sandbox } from "@dsec/sdk";
import { exitCodes, passOn, printJson, UsageError } from "./command-line.ts";

/** How `dsec run` and `dsec exec` show a command. */
export interface FollowOptions {
  readonly argv: readonly string[];
  readonly json: boolean;
  readonly readStdin: boolean;
  readonly timeoutMs: number | undefined;
  readonly cwd: string | undefined;
  readonly user: string | undefined;
}

/**
 * Runs a command with its input and output those of this process, and resolves with its exit code: 128 + signal when one ended
 * it, 124 at its time limit, 125 when the platform is to blame. When the signal aborts the command is killed.
 */
export async function followCommand(
  sandbox: Sandbox,
  options: FollowOptions,
  signal: AbortSignal,
): Promise<number> {
  if (options.argv.length === 0) throw new UsageError("a command is missing behind --");
  const start: CommandOptions = {
    signal,
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.readStdin ? { stdin: await readStdin() } : {}),
  };
  if (options.json) {
    const result = await sandbox.exec(options.argv, start);
    const { exitCode, stdout, stderr, truncated, outcome } = result;
    printJson({ sandboxId: sandbox.id, exitCode, stdout, stderr, truncated, outcome });
    return exitCodeOf(outcome);
  }
  const command = await sandbox.start(options.argv, start);
  const output = Promise.all([
    passOn(command.stdout, process.stdout),
    passOn(command.stderr, process.stderr),
  ]);
  const outcome = await outcomeOrKill(command, signal);
  await output;
  if (outcome.message !== null && outcome.cause !== "exit")
    process.stderr.write(`dsec: ${outcome.message}\n`);
  return exitCodeOf(outcome);
}

async function outcomeOrKill(command: Command, signal: AbortSignal): Promise<Outcome> {
  try {
    return await command.outcome({ signal });
  } catch (error) {
    if (signal.aborted) {
      await command.kill().catch((cause: unknown) => {
        // It ended by itself, or its sandbox did: nothing is left to kill.
        if (!(cause instanceof DsecError)) throw cause;
      });
    }
    throw error;
  }
}

function exitCodeOf(outcome: Outcome): number {
  if (outcome.cause === "timeout") return exitCodes.timeLimit;
  if (outcome.failure.maskable) return exitCodes.platform;
  if (outcome.exitCode !== null) return outcome.exitCode;
  return outcome.signal === null ? exitCodes.platform : 128 + outcome.signal;
}

async function readStdin(): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    parts.push(part);
    length += part.length;
    if (length > limits.stdinBytesMax) {
      throw new UsageError(`--stdin takes at most ${limits.stdinBytesMax} bytes; write a file for more`);
    }
  }
  return Buffer.concat(parts);
}
