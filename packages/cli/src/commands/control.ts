import { ControlConfig, startControl } from "@dsec/control";
import { loadConfig } from "@dsec/kit";
import { type CliCommand, exitCodes, exitCodesHelp, printJson, readArguments } from "../command-line.ts";
import { untilAborted } from "../until-aborted.ts";

const options = {
  config: { type: "string" },
  "data-dir": { type: "string" },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "control",
  summary: "run the control plane in the foreground",
  help: `dsec control [--config FILE] [--data-dir DIR] [--json]

Serves the public API until Ctrl-C or SIGTERM. The first line on stdout is JSON: where it serves and, the first time
only and unless the configuration names a file for it, the bootstrap admin key.

  --config FILE   JSON settings; unknown keys stop the start (docs: packages/control/src/config.ts)
  --data-dir DIR  in the place of the configured data directory

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values } = readArguments(args, options);
    const config = loadConfig(ControlConfig, {
      ...(values.config === undefined ? {} : { file: values.config }),
      overrides: values["data-dir"] === undefined ? {} : { dataDir: values["data-dir"] },
    });
    await using control = await startControl(config);
    const { url, clusterUrl, bootstrapKey } = control;
    const shown = config.bootstrapKeyFile === undefined && bootstrapKey !== undefined ? { bootstrapKey } : {};
    printJson({ url, clusterUrl, ...shown });
    await untilAborted(signal);
    return exitCodes.ok;
  },
};
