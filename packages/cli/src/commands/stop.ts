import { DsecClient, DsecError, type Sandbox } from "@dsec/sdk";
import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  print,
  printJson,
  readArguments,
  UsageError,
} from "../command-line.ts";
import { findAll, stopSandboxes } from "../stop-sandboxes.ts";

const options = {
  all: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "stop",
  summary: "stop sandboxes",
  help: `dsec stop [--json] SANDBOX… | --all

Stops sandboxes and waits until they and all that they held are gone. --all means every one of the key's project.
An unknown sandbox is an error; the others are stopped all the same.

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values, positionals } = readArguments(args, options);
    if (values.all === positionals.length > 0) throw new UsageError("give sandboxes, or --all");
    await using client = new DsecClient();
    const found = values.all ? await findAll(client, signal) : await find(client, positionals, signal);
    await stopSandboxes(found, signal);
    if (values.json) printJson({ stopped: found.map((sandbox) => sandbox.id) });
    else for (const sandbox of found) print(sandbox.id);
    return values.all || found.length === positionals.length ? exitCodes.ok : exitCodes.failed;
  },
};

async function find(client: DsecClient, ids: readonly string[], signal: AbortSignal): Promise<Sandbox[]> {
  const found: Sandbox[] = [];
  for (const id of ids) {
    try {
      found.push(await client.sandboxes.get(id, { signal }));
    } catch (error) {
      if (!(error instanceof DsecError && error.code === "not_found")) throw error;
      process.stderr.write(`dsec stop: ${error.message}\n`);
    }
  }
  return found;
}
