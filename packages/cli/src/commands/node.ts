import { DsecClient } from "@dsec/sdk";
import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  formatTable,
  print,
  printJson,
  readArguments,
  UsageError,
} from "../command-line.ts";

const options = { json: { type: "boolean", default: false } } as const;

export const command: CliCommand = {
  name: "node",
  summary: "list nodes, let an edge join",
  help: `dsec node list [--json]
dsec node join-token [--json]

Needs an admin key. \`join-token\` prints a token for \`dsec edge --join URL TOKEN\`; it expires.

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values, positionals } = readArguments(args, options);
    await using client = new DsecClient();
    switch (positionals[0]) {
      case "list": {
        const nodes = await client.nodes.list({ signal });
        const rows = nodes.map(({ id, hostname, health, load, url }) => [
          id,
          hostname,
          health,
          load === null ? "" : `${load.sandboxes} of ${load.sandboxesMax}`,
          load === null ? "" : `${load.memoryAvailableMib} of ${load.memoryTotalMib} MiB`,
          url,
        ]);
        if (values.json) printJson(nodes);
        else print(formatTable([["NODE", "HOST", "HEALTH", "SANDBOXES", "MEMORY FREE", "URL"], ...rows]));
        return exitCodes.ok;
      }
      case "join-token": {
        const token = await client.nodes.createJoinToken({ signal });
        if (values.json) printJson(token);
        else print(token.token);
        return exitCodes.ok;
      }
      default:
        throw new UsageError("say list or join-token");
    }
  },
};
