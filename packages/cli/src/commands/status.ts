import { DsecClient } from "@dsec/sdk";
import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  formatTable,
  print,
  printJson,
  readArguments,
} from "../command-line.ts";
import { readKey } from "../platform/key-file.ts";
import { standardPlaces } from "../platform/places.ts";
import { isRunning } from "../platform/processes.ts";
import { isWhole, readState, type UpState } from "../platform/state.ts";

const options = { json: { type: "boolean", default: false } } as const;

export const command: CliCommand = {
  name: "status",
  summary: "what runs on this machine",
  help: `dsec status [--json]

The platform that \`dsec up\` started here: its processes, nodes and sandboxes. Ends with 1 when it is not up or a part
of it is missing.

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values } = readArguments(args, options);
    const state = readState(standardPlaces().runDir);
    if (state === undefined) {
      if (values.json) printJson({ up: false });
      else print("down; `dsec up` starts the platform");
      return exitCodes.failed;
    }
    const processes = [
      { name: "control", pid: state.control.pid, running: isRunning(state.control), log: state.control.log },
      ...state.edges.map((edge) => ({
        name: `edge ${edge.nodeId}`,
        pid: edge.pid,
        running: isRunning(edge),
        log: edge.log,
      })),
    ];
    const sandboxes = isRunning(state.control) ? await countSandboxes(state, signal) : null;
    const { url, keyFile, dataDir } = state;
    if (values.json) printJson({ up: isWhole(state), url, keyFile, dataDir, processes, sandboxes });
    else {
      print(`url       ${url}\nkey       in ${keyFile}\nsandboxes ${sandboxes ?? "unknown"}\n`);
      const rows = processes.map((one) => [
        one.name,
        String(one.pid),
        one.running ? "runs" : "ENDED",
        one.log,
      ]);
      print(formatTable([["PROCESS", "PID", "STATE", "LOG"], ...rows]));
    }
    return isWhole(state) ? exitCodes.ok : exitCodes.failed;
  },
};

/** Those that the fleet's nodes report. */
async function countSandboxes(state: UpState, signal: AbortSignal): Promise<number> {
  await using client = new DsecClient({ url: state.url, key: readKey(state.keyFile), timeoutMs: 5_000 });
  const nodes = await client.nodes.list({ signal });
  return nodes.reduce((sum, node) => sum + (node.load?.sandboxes ?? 0), 0);
}
