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

const options = {
  project: { type: "string" },
  name: { type: "string" },
  admin: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "key",
  summary: "create, list and revoke API keys",
  help: `dsec key create --project PROJECT --name NAME [--admin] [--json]
dsec key list [--json]
dsec key revoke [--json] KEY

Needs an admin key. \`create\` prints the secret on stdout this once; only its hash is kept.
An admin key manages projects, keys and nodes of the whole platform.

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values, positionals } = readArguments(args, options);
    const [action, id] = positionals;
    await using client = new DsecClient();
    switch (action) {
      case "create": {
        const { project, name } = values;
        if (project === undefined || name === undefined) throw new UsageError("give --project and --name");
        const role = values.admin ? "admin" : "member";
        const created = await client.keys.create({ project, name, role }, { signal });
        if (values.json) printJson(created);
        else print(created.secret);
        return exitCodes.ok;
      }
      case "list": {
        const keys = await client.keys.list({ signal });
        const rows = keys.map((key) => [
          key.id,
          key.project,
          key.name,
          key.role,
          key.revokedAtMs === null ? "valid" : "revoked",
        ]);
        if (values.json) printJson(keys);
        else print(formatTable([["KEY", "PROJECT", "NAME", "ROLE", "STATE"], ...rows]));
        return exitCodes.ok;
      }
      case "revoke": {
        if (id === undefined) throw new UsageError("give the id of a key");
        await client.keys.revoke(id, { signal });
        if (values.json) printJson({ revoked: id });
        return exitCodes.ok;
      }
      default:
        throw new UsageError("say create, list or revoke");
    }
  },
};
