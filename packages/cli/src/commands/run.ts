import { type CreateSandboxInput, limits } from "@dsec/contracts";
import { DsecClient } from "@dsec/sdk";
import { type CliCommand, readArguments, splitAtDashes, UsageError, wholeNumber } from "../command-line.ts";
import { followCommand } from "../follow.ts";

const options = {
  base: { type: "string" },
  workspace: { type: "string" },
  cpu: { type: "string" },
  memory: { type: "string" },
  timeout: { type: "string" },
  cwd: { type: "string" },
  user: { type: "string" },
  stdin: { type: "boolean", short: "i", default: false },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "run",
  summary: "create a sandbox, run one command in it, stop it",
  help: `dsec run [options] -- COMMAND [ARGUMENT…]

Creates a sandbox, runs the command with its output here, and stops the sandbox; Ctrl-C does so too.

  --base NAME       base layer (default: default)
  --workspace NAME  workspace layer on top of it
  --cpu N           cores, for example 0.5 (default: 1)
  --memory MIB      memory limit in MiB (default: 1024)
  --timeout SECONDS time limit of the command (default: 600)
  --cwd PATH        working directory
  --user NAME       user inside (default: root)
  -i, --stdin       pass this command's input on, up to 1 MiB
  --json            wait for the end and print the result as one line of JSON

Exit code: that of the command; 128 + N when signal N ended it; 124 at its time limit; 125 when the platform failed;
2 for wrong usage; 130 after Ctrl-C.
`,
  async run({ args, signal }) {
    const { own, command: argv } = splitAtDashes(args);
    const { values, positionals } = readArguments(own, options);
    if (positionals.length > 0 || argv.length === 0) throw new UsageError("the command stands behind --");
    const timeout = values.timeout === undefined ? undefined : secondsToMs(values.timeout);
    await using client = new DsecClient();
    await using sandbox = await client.sandboxes.create(inputOf(values), { signal });
    return await followCommand(
      sandbox,
      {
        argv,
        json: values.json,
        readStdin: values.stdin,
        timeoutMs: timeout,
        cwd: values.cwd,
        user: values.user,
      },
      signal,
    );
  },
};

function secondsToMs(text: string): number {
  return wholeNumber("timeout", text, { min: 1, max: limits.commandTimeoutMsMax / 1000 }) * 1000;
}

interface Values {
  readonly base?: string | undefined;
  readonly workspace?: string | undefined;
  readonly cpu?: string | undefined;
  readonly memory?: string | undefined;
  readonly timeout?: string | undefined;
}

function inputOf(values: Values): CreateSandboxInput {
  const { base, workspace, cpu, memory } = values;
  const cpuCores = Number(cpu ?? 1);
  if (!(cpuCores > 0 && cpuCores <= limits.cpuCoresMax))
    throw new UsageError(`--cpu wants a number of cores, not "${cpu}"`);
  return {
    environment: {
      ...(base === undefined ? {} : { base }),
      ...(workspace === undefined ? {} : { workspace }),
    },
    cpuCores,
    ...(memory === undefined
      ? {}
      : { memoryMib: wholeNumber("memory", memory, { min: limits.memoryMibMin, max: limits.memoryMibMax }) }),
    labels: { "dsec.run": "1" },
  };
}
