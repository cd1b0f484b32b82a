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
  name: "project",
  summary: "create and list projects",
  help: `dsec project create [--json] NAME
dsec project list [--json]

Needs an admin key. Sandboxes and keys belong to one project; another project's are unknown to them.

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values, positionals } = readArguments(args, options);
    const [action, name] = positionals;
    await using client = new DsecClient();
    switch (action) {
      case "create": {
        if (name === undefined) throw new UsageError("give the project a name");
        const project = await client.projects.create(name, { signal });
        if (values.json) printJson(project);
        else print(project.id);
        return exitCodes.ok;
      }
      case "list": {
        const projects = await client.projects.list({ signal });
        if (values.json) printJson(projects);
        else
          print(formatTable([["PROJECT", "NAME"], ...projects.map((project) => [project.id, project.name])]));
        return exitCodes.ok;
      }
      default:
        throw new UsageError("say create or list");
    }
  },
};
