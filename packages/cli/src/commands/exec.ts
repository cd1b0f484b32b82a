import { limits } from "@dsec/contracts";
import { DsecClient } from "@dsec/sdk";
import { type CliCommand, readArguments, splitAtDashes, UsageError, wholeNumber } from "../command-line.ts";
import { followCommand } from "../follow.ts";

const options = {
  timeout: { type: "string" },
  cwd: { type: "string" },
  user: { type: "string" },
  stdin: { type: "boolean", short: "i", default: false },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "exec",
  summary: "run a command in a sandbox that lives",
  help: `dsec exec [options] SANDBOX -- COMMAND [ARGUMENT…]

Runs the command with its output here. Ctrl-C kills the command; the sandbox lives on.

  --timeout SECONDS time limit of the command (default: 600)
  --cwd PATH        working directory
  --user NAME       user inside (default: the sandbox's)
  -i, --stdin       pass this command's input on, up to 1 MiB
  --json            wait for the end and print the result as one line of JSON

Exit code: that of the command; 128 + N when signal N ended it; 124 at its time limit; 125 when the platform failed;
2 for wrong usage; 130 after Ctrl-C.
`,
  async run({ args, signal }) {
    const { own, command: argv } = splitAtDashes(args);
    const { values, positionals } = readArguments(own, options);
    const [id, ...rest] = positionals;
    if (id === undefined || rest.length > 0) throw new UsageError("give one sandbox before --");
    const bounds = { min: 1, max: limits.commandTimeoutMsMax / 1000 };
    const timeoutMs =
      values.timeout === undefined ? undefined : wholeNumber("timeout", values.timeout, bounds) * 1000;
    await using client = new DsecClient();
    const sandbox = await client.sandboxes.get(id, { signal });
    const { json, stdin: readStdin, cwd, user } = values;
    return await followCommand(sandbox, { argv, json, readStdin, timeoutMs, cwd, user }, signal);
  },
};
