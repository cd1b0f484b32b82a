import { DsecClient } from "@dsec/sdk";
import { checkHost, describeReport } from "@dsec/tools/host-check";
import {
  type CliCommand,
  exitCodes,
  exitCodesHelp,
  formatTable,
  print,
  printJson,
  readArguments,
  tell,
} from "../command-line.ts";
import { readKey } from "../platform/key-file.ts";
import { findLeaks, nodesOf, readLook } from "../platform/leaks.ts";
import { standardPlaces } from "../platform/places.ts";
import { isRunning } from "../platform/processes.ts";
import { readState } from "../platform/state.ts";

const options = {
  leaks: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const command: CliCommand = {
  name: "doctor",
  summary: "will this host do; what can the platform do; did it leave anything",
  help: `dsec doctor [--leaks] [--json]

Checks this host, and when the platform is up shows its capabilities and those of its nodes.

  --leaks  compares processes, mounts in every namespace, cgroups, namespaces, network devices, loop and zram devices,
           sockets and files with the state before \`dsec up\`; wants the platform to be down
  --json   one line of JSON

${exitCodesHelp}
`,
  async run({ args, signal }) {
    const { values } = readArguments(args, options);
    return values.leaks ? await reportLeaks(values.json, signal) : await reportHost(values.json, signal);
  },
};

async function reportHost(json: boolean, signal: AbortSignal): Promise<number> {
  const places = standardPlaces();
  const host = checkHost({ dataDir: places.dataDir });
  const state = readState(places.runDir);
  const capabilities =
    state !== undefined && isRunning(state.control) ? await askPlatform(state, signal) : null;
  const isFine = host.every((report) => report.kind !== "failed");
  if (json) printJson({ host, capabilities });
  else {
    for (const report of host) print(describeReport(report));
    if (capabilities !== null) {
      const rows = capabilities.map(({ name, available, reason }) => [
        name,
        available ? "yes" : "no",
        reason ?? "",
      ]);
      print(`\n${formatTable([["CAPABILITY", "", ""], ...rows])}`);
    }
  }
  return isFine ? exitCodes.ok : exitCodes.failed;
}

async function askPlatform(
  { url, keyFile }: { readonly url: string; readonly keyFile: string },
  signal: AbortSignal,
): ReturnType<DsecClient["capabilities"]> {
  await using client = new DsecClient({ url, key: readKey(keyFile), timeoutMs: 5_000 });
  return await client.capabilities({ signal });
}

async function reportLeaks(json: boolean, signal: AbortSignal): Promise<number> {
  const places = standardPlaces();
  const state = readState(places.runDir);
  if (state !== undefined && (isRunning(state.control) || state.edges.some(isRunning))) {
    tell("the platform is up: what it holds now is no leak; `dsec down` first");
    return exitCodes.usage;
  }
  const before = readLook(places.runDir);
  if (before === undefined) {
    tell("`dsec up` has not run since this machine started: nothing to compare with");
    return exitCodes.usage;
  }
  const leaks = await findLeaks(before, { places, nodeIds: nodesOf(places.dataDir) }, signal);
  if (json) printJson({ leaks });
  else {
    for (const leak of leaks) print(`${leak.kind}: ${leak.what} (${leak.evidence})`);
    print(leaks.length === 0 ? "nothing is left" : `${leaks.length} left`);
  }
  return leaks.length === 0 ? exitCodes.ok : exitCodes.failed;
}
