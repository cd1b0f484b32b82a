#!/usr/bin/env node
import { isPlatformError } from "@dsec/contracts";
import { DsecError } from "@dsec/sdk";
import { type CliCommand, exitCodes, Interruption, print, tell, UsageError } from "./command-line.ts";
import { commandNames, loadCommand } from "./commands.ts";

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // The reader has seen enough, as `head` has.
  if (error.code === "EPIPE") process.exit();
  throw error;
});
process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  const [name = "--help", ...args] = words;
  if (name === "--help" || name === "-h" || name === "help") {
    print(await overview());
    return exitCodes.ok;
  }
  const command = await loadCommand(name);
  if (command === undefined) {
    tell(`dsec: there is no command "${name}"; \`dsec --help\` lists them`);
    return exitCodes.usage;
  }
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (own.includes("--help") || own.includes("-h")) {
    print(command.help.trimEnd());
    return exitCodes.ok;
  }
  return await runCommand(command, args);
}

async function runCommand(command: CliCommand, args: readonly string[]): Promise<number> {
  const interruption = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (interruption.signal.aborted) process.exit(exitCodes.interrupted);
    if (signal === "SIGINT" && process.stdin.isTTY)
      tell("\ndsec: ending what was started; again to leave at once");
    interruption.abort(new Interruption(signal));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
  try {
    return await command.run({ args, signal: interruption.signal });
  } catch (error) {
    if (interruption.signal.aborted) {
      if (error instanceof SuppressedError) report(`${command.name}, cleaning up`, error.error);
      return exitCodes.interrupted;
    }
    return report(command.name, error);
  }
}

function report(name: string, error: unknown): number {
  if (error instanceof SuppressedError) {
    // The command failed, and then the giving back of what it held.
    const exitCode = report(name, error.suppressed);
    report(`${name}, cleaning up`, error.error);
    return exitCode;
  }
  if (error instanceof UsageError) {
    tell(`dsec ${name}: ${error.message}; \`dsec ${name} --help\` says more`);
    return exitCodes.usage;
  }
  if (!(error instanceof DsecError) && !isPlatformError(error)) throw error;
  tell(`dsec ${name}: ${error.message} (${error.code})`);
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause)
    tell(`  because: ${cause.message}`);
  return exitCodes.platform;
}

async function overview(): Promise<string> {
  const lines = ["dsec COMMAND [options]", ""];
  for (const name of commandNames)
    lines.push(`  ${name.padEnd(9)} ${(await loadCommand(name))?.summary ?? ""}`);
  lines.push(
    "",
    "`dsec COMMAND --help` describes one. Address and key come from DSEC_URL and DSEC_KEY, else from",
  );
  lines.push("the platform that `dsec up` started on this machine.");
  return lines.join("\n");
}
