import { checkHost, describeReport } from "@dsec/tools/host-check";
import {
  type CliCommand,
  exitCodes,
  print,
  printJson,
  readArguments,
  tell,
  wholeNumber,
} from "../command-line.ts";
import { standardPlaces } from "../platform/places.ts";
import { startPlatform } from "../platform/start-platform.ts";

const options = {
  edges: { type: "string", default: "1" },
  port: { type: "string", default: "7070" },
  "cluster-port": { type: "string", default: "7071" },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "up",
  summary: "start the platform on this machine",
  help: `dsec up [--edges N] [--port N] [--cluster-port N] [--json]

Starts control and edge as processes of their own and waits until sandboxes can be created; the first time it builds the
default base layer, which takes about a minute. A platform that runs is left as it is; a process that it lost is started
again, and live sandboxes with it. Its state is in /run/dsec/up.json, its data in /var/lib/dsec; DSEC_RUN_DIR and
DSEC_DATA_DIR move both.

  --edges N         edges on this machine (default: 1)
  --port N          port of the API (default: 7070; 0 takes a free one)
  --cluster-port N  port that edges join and report at (default: 7071; 0 takes a free one)
  --json            print {url, keyFile, nodes} as one line

Exit codes: 0 it is up; 2 wrong usage, or this host will not do; 125 it did not start; 130 ended by Ctrl-C.
`,
  async run({ args, signal }) {
    const { values } = readArguments(args, options);
    const edges = wholeNumber("edges", values.edges, { min: 1, max: 16 });
    const port = { min: 0, max: 65_535 };
    const places = {
      ...standardPlaces(),
      apiPort: wholeNumber("port", values.port, port),
      clusterPort: wholeNumber("cluster-port", values["cluster-port"], port),
    };
    const failed = checkHost({ dataDir: places.dataDir }).filter((report) => report.kind === "failed");
    for (const report of failed) tell(describeReport(report));
    if (failed.length > 0) return exitCodes.usage;
    const { state } = await startPlatform({ places, edges, progress: tell }, signal);
    const { url, keyFile } = state;
    if (values.json) printJson({ url, keyFile, nodes: state.edges.map((edge) => edge.nodeId) });
    else {
      print(`up at ${url}, admin key in ${keyFile}`);
      print("try: dsec run -- echo hello");
    }
    return exitCodes.ok;
  },
};
