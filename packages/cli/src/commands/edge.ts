import { EdgeConfig, startEdge } from "@dsec/edge";
import { loadConfig } from "@dsec/kit";
import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  Interruption,
  printJson,
  readArguments,
  UsageError,
} from "../command-line.ts";
import { untilAborted } from "../until-aborted.ts";

const options = {
  config: { type: "string" },
  join: { type: "boolean", default: false },
  end: { type: "boolean", default: false },
  "data-dir": { type: "string" },
  "run-dir": { type: "string" },
  "layers-dir": { type: "string" },
  host: { type: "string" },
  port: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "edge",
  summary: "run a node's edge in the foreground",
  help: `dsec edge --join URL TOKEN [options]
dsec edge [--config FILE] [options]

Serves this machine's sandboxes. Ctrl-C (SIGINT) ends it with all its sandboxes and leaves nothing but its data; SIGTERM
ends the edge alone: sandboxes live on without it and are adopted when it starts again. Lines of JSON on stdout say what
it does at start, {progress}, and where it serves, {nodeId, url}. The token comes from \`dsec node join-token\`; URL is
that of control's cluster listener. An edge that has joined before needs neither.

  --end             end all sandboxes that an earlier edge left, then this edge
  --config FILE     JSON settings; unknown keys stop the start
  --data-dir DIR    ledger, sandboxes' files, layers (default: /var/lib/dsec); one edge a directory
  --run-dir DIR     sockets (default: /run/dsec)
  --layers-dir DIR  layer store, may be shared (default: layers in the data directory)
  --host HOST       address to serve at (default: 127.0.0.1)
  --port PORT       port to serve at (default: a free one)
  --json            changes nothing: what it says on stdout is JSON anyway

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values, positionals } = readArguments(args, options);
    const config = loadConfig(EdgeConfig, {
      ...(values.config === undefined ? {} : { file: values.config }),
      overrides: overridesOf(values, positionals),
    });
    await using edge = await startEdge(config, (progress) => printJson({ progress }), signal);
    printJson({ nodeId: edge.nodeId, url: edge.url });
    if (!values.end) await untilAborted(signal);
    const isLeft = signal.reason instanceof Interruption && signal.reason.signal !== "SIGINT";
    if (!isLeft) await edge.endAll();
    return exitCodes.ok;
  },
};

interface Values {
  readonly join: boolean;
  readonly "data-dir"?: string | undefined;
  readonly "run-dir"?: string | undefined;
  readonly "layers-dir"?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: string | undefined;
}

function overridesOf(values: Values, positionals: readonly string[]): Readonly<Record<string, unknown>> {
  const [url, token, ...rest] = positionals;
  const isComplete = token !== undefined && rest.length === 0;
  if (values.join ? !isComplete : positionals.length > 0) throw new UsageError("--join wants URL and TOKEN");
  const { host, port } = values;
  const listen = {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: Number(port) }),
  };
  return {
    ...(values.join ? { join: { url, token } } : {}),
    ...(values["data-dir"] === undefined ? {} : { dataDir: values["data-dir"] }),
    ...(values["run-dir"] === undefined ? {} : { runDir: values["run-dir"] }),
    ...(values["layers-dir"] === undefined ? {} : { layersDir: values["layers-dir"] }),
    ...(host === undefined && port === undefined ? {} : { listen }),
  };
}
