import { parseArgs } from "node:util";
import { loadConfig, untilToldToEnd } from "@dsec/kit";
import { ControlConfig } from "./config.ts";
import { startControl } from "./start.ts";

/** `main.ts [--config FILE]`: runs control until SIGTERM. One JSON line on stdout says where it serves. */
const { values } = parseArgs({ options: { config: { type: "string" } } });
const config = loadConfig(ControlConfig, values.config === undefined ? {} : { file: values.config });
await using control = await startControl(config);
const { url, clusterUrl, bootstrapKey } = control;
process.stdout.write(
  `${JSON.stringify({ url, clusterUrl, ...(config.bootstrapKeyFile === undefined ? { bootstrapKey } : {}) })}\n`,
);
await untilToldToEnd();
