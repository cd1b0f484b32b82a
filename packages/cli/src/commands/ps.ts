import type { SandboxState } from "@dsec/contracts";
import { DsecClient, type Sandbox } from "@dsec/sdk";
import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  formatTable,
  print,
  printJson,
  readArguments,
} from "../command-line.ts";

const options = {
  all: { type: "boolean", short: "a", default: false },
  job: { type: "string" },
  label: { type: "string", multiple: true },
  json: { type: "boolean", default: false },
} as const;

const ended: ReadonlySet<SandboxState> = new Set(["stopped", "failed"]);

export const command: CliCommand = {
  name: "ps",
  summary: "list sandboxes",
  help: `dsec ps [options]

Lists the sandboxes of the key's project that live.

  -a, --all          those that have ended too
  --job NAME         of that job only
  --label KEY=VALUE  with that label only; may be repeated
  --json             one line of JSON: an array as the API describes sandboxes

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values } = readArguments(args, options);
    await using client = new DsecClient();
    const filter = {
      ...(values.job === undefined ? {} : { job: values.job }),
      ...(values.label === undefined ? {} : { label: values.label }),
    };
    const found: Sandbox[] = [];
    for await (const sandbox of client.sandboxes.list(filter, { signal })) {
      if (values.all || !ended.has(sandbox.info.state)) found.push(sandbox);
    }
    if (values.json) printJson(found.map((sandbox) => sandbox.info));
    else print(describe(found));
    return exitCodes.ok;
  },
};

function describe(sandboxes: readonly Sandbox[]): string {
  const rows = sandboxes.map(({ info }) => [
    info.id,
    info.state,
    info.node,
    [info.environment.base, info.environment.workspace].filter((name) => name !== undefined).join(" + "),
    describeAge(Date.now() - info.createdAtMs),
    info.job ?? "",
  ]);
  return formatTable([["SANDBOX", "STATE", "NODE", "LAYERS", "AGE", "JOB"], ...rows]);
}

/** A time span in its largest whole unit. */
export function describeAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3_600)} h`;
}
