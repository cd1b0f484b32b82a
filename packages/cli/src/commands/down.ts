import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  printJson,
  readArguments,
  tell,
} from "../command-line.ts";
import { standardPlaces } from "../platform/places.ts";
import { readState } from "../platform/state.ts";
import { stopPlatform } from "../platform/stop-platform.ts";

const options = { json: { type: "boolean", default: false } } as const;

export const command: CliCommand = {
  name: "down",
  summary: "stop all sandboxes and the platform on this machine",
  help: `dsec down [--json]

Stops every sandbox, then edges and control that \`dsec up\` started, and waits until they are gone. Layers, keys and
logs stay. Nothing to stop is no error. \`dsec doctor --leaks\` then shows that nothing is left.

${exitCodesHelp}
`,
  async run({ args }) {
    const { values } = readArguments(args, options);
    const state = readState(standardPlaces().runDir);
    if (state !== undefined) await stopPlatform(state, tell);
    else tell("nothing runs");
    if (values.json) printJson({ wasUp: state !== undefined });
    return exitCodes.ok;
  },
};
