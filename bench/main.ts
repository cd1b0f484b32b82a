import { join } from "node:path";
import { parseArgs } from "node:util";
import { benchmarks } from "./benchmarks.ts";
import { runBench } from "./command.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, json: { type: "boolean", default: false } },
});
const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => stop.abort(new Error(`ended by ${name}`)));
}

process.exitCode = await runBench(
  { word: positionals[0] ?? "list", quick: values.quick, json: values.json },
  {
    benchmarks,
    repository: join(import.meta.dirname, ".."),
    resultsFolder: join(import.meta.dirname, "results"),
    signal: stop.signal,
    print: (line) => console.log(line),
    progress: (line) => console.error(line),
  },
);
