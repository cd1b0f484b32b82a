import { type Exec, PlatformError, type StartCommand, type User } from "@dsec/contracts";
import type { CommandChannel } from "../chronus/init-client.ts";
import type { ImageFacts } from "./image-facts.ts";

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a command gets beside what its caller says: nothing of the platform's own environment. */
export function environmentOf(
  user: User,
  facts: ImageFacts,
  ...given: readonly (Readonly<Record<string, string>> | undefined)[]
): Record<string, string> {
  const account =
    typeof user === "string"
      ? facts.accounts.find(({ name }) => name === user)
      : facts.accounts.find(({ uid }) => uid === user.uid);
  const name = account?.name ?? (typeof user === "string" ? user : String(user.uid));
  return Object.assign(
    {
      PATH: path,
      HOME: account?.home ?? (name === "root" ? "/root" : "/"),
      USER: name,
      LOGNAME: name,
      LANG: "C.UTF-8",
      TERM: "dumb",
    },
    ...given,
  );
}

/** argv of a request; throws `invalid_request` unless exactly one of `argv` and `shell` is given. */
export function argvOf(
  { argv, shell }: Pick<StartCommand, "argv" | "shell">,
  facts: ImageFacts,
): readonly string[] {
  if (argv !== undefined && shell === undefined) return argv;
  if (shell !== undefined && argv === undefined)
    return [facts.hasBash ? "/bin/bash" : "/bin/sh", "-c", shell];
  throw new PlatformError("invalid_request", "Cannot run the command: give exactly one of argv and shell");
}

/** Input of a request; undefined when it has none. */
export function inputOf({ stdin, stdinBase64 }: Pick<Exec, "stdin" | "stdinBase64">): Buffer | undefined {
  if (stdin !== undefined && stdinBase64 !== undefined) {
    throw new PlatformError(
      "invalid_request",
      "Cannot run the command: give at most one of stdin and stdinBase64",
    );
  }
  if (stdinBase64 !== undefined) return Buffer.from(stdinBase64, "base64");
  return stdin === undefined ? undefined : Buffer.from(stdin, "utf8");
}

/** Sends the input; resolves when the command has it all or takes no more. */
export async function feed(channel: CommandChannel, input: Buffer | undefined): Promise<void> {
  if (input === undefined) return;
  try {
    await channel.sendInput(input);
  } catch {
    // The command ended, or the connection did, before it had read everything; its end says which.
  }
}
