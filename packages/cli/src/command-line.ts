import { once } from "node:events";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

/** What a command gets to work with. */
export interface Context {
  /** The words after the command's name. */
  readonly args: readonly string[];
  /** Aborts on Ctrl-C and SIGTERM; what was started for the command must be gone when it returns. */
  readonly signal: AbortSignal;
}

/** Why the signal of a context aborted. */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.signal = signal;
  }
}

/** One command of `dsec`. */
export interface CliCommand {
  readonly name: string;
  /** One line of `dsec --help`. */
  readonly summary: string;
  readonly help: string;
  /** Resolves with the exit code. */
  run(context: Context): Promise<number>;
}

/** Exit codes that are the same for every command. */
export const exitCodes = {
  ok: 0,
  /** What was asked for did not come out: a job differs from its plan, a check failed, something leaked. */
  failed: 1,
  /** The words of the command line are wrong, or this host will not do. */
  usage: 2,
  /** A command in a sandbox reached its time limit. */
  timeLimit: 124,
  /** The platform refused or failed. */
  platform: 125,
  /** Ended by Ctrl-C; all that was started is gone. */
  interrupted: 130,
} as const;

export const exitCodesHelp = `Exit codes: 0 done; 1 not as planned; 2 wrong usage; 125 the platform failed; 130 ended by Ctrl-C.`;

/** The words of the command line cannot be understood; the message says which. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Options and words of a command. Throws UsageError. */
export function readArguments<Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
): ReturnType<typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true; strict: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** The words before and after the first `--`. */
export function splitAtDashes(args: readonly string[]): {
  readonly own: string[];
  readonly command: string[];
} {
  const at = args.indexOf("--");
  return at < 0 ? { own: [...args], command: [] } : { own: args.slice(0, at), command: args.slice(at + 1) };
}

/** A whole number of an option within its bounds. Throws UsageError. */
export function wholeNumber(
  name: string,
  text: string,
  bounds: { readonly min: number; readonly max: number },
): number {
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= bounds.min && value <= bounds.max) return value;
  throw new UsageError(`--${name} wants a whole number from ${bounds.min} to ${bounds.max}, not "${text}"`);
}

/** A line on stdout: results. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A line on stderr: progress and what is for people only. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

/** Rows with aligned columns; the first row is the head. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Passes bytes on as they come, no faster than the reader takes them. */
export async function passOn(source: AsyncIterable<Uint8Array>, target: NodeJS.WriteStream): Promise<void> {
  for await (const bytes of source) {
    if (!target.write(bytes)) await once(target, "drain");
  }
}
