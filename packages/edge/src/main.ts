import { parseArgs } from "node:util";
import { loadConfig, untilToldToEnd } from "@dsec/kit";
import { EdgeConfig } from "./config.ts";
import { startEdge } from "./start/edge.ts";

/**
 * `main.ts [--config FILE] [--end-sandboxes]`: runs an edge until SIGTERM. One JSON line on stdout says where it serves. Its sandboxes
 * live on, but with --end-sandboxes they end with it and nothing of the node stays.
 */
const { values } = parseArgs({
  options: { config: { type: "string" }, "end-sandboxes": { type: "boolean", default: false } },
});
const config = loadConfig(EdgeConfig, values.config === undefined ? {} : { file: values.config });
await using edge = await startEdge(config, (line) => void process.stderr.write(`${line}\n`));
process.stdout.write(`${JSON.stringify({ nodeId: edge.nodeId, url: edge.url })}\n`);
await untilToldToEnd();
if (values["end-sandboxes"]) await edge.endAll();
