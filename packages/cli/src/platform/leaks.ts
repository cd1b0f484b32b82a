import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compareSnapshots, HostSnapshot, type Leak, settle, takeSnapshot } from "@dsec/edge";
import { parseJson } from "@dsec/kit";
import { filesOf, type Places } from "./places.ts";

/** The kernel takes some things away a moment after their last user. */
const settleMs = 5_000;

type Directories = Pick<Places, "runDir" | "dataDir" | "layersDir">;

/** How this host looks now, for a comparison later. */
export function lookAtHost(places: Directories): HostSnapshot {
  return takeSnapshot([places.runDir, places.dataDir]);
}

/** Keeps the look before `up`. */
export function saveLook(look: HostSnapshot, runDir: string): void {
  writeFileSync(filesOf(runDir).leaksBefore, JSON.stringify(look), { mode: 0o600 });
}

/** The look before the last `up`; undefined when there was none since the machine started. */
export function readLook(runDir: string): HostSnapshot | undefined {
  let text: string;
  try {
    text = readFileSync(filesOf(runDir).leaksBefore, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  return parseJson(HostSnapshot, text, "snapshot of this host");
}

/** What is there now and was not before, and belongs to the platform's nodes; what a platform keeps on purpose is left out. */
export async function findLeaks(
  before: HostSnapshot,
  scope: { readonly places: Directories; readonly nodeIds: readonly string[] },
  signal: AbortSignal,
): Promise<readonly Leak[]> {
  const { places, nodeIds } = scope;
  const compare = (): Leak[] =>
    compareSnapshots(before, lookAtHost(places), {
      directories: [places.dataDir, places.runDir],
      nodeIds,
      aloneOnHost: false,
      ignore: keptOnPurpose(places),
    });
  return await settle(compare, settleMs, signal);
}

/** Nodes whose directories are in a data directory. */
export function nodesOf(dataDir: string): readonly string[] {
  try {
    return readdirSync(join(dataDir, "edge"));
  } catch {
    return []; // No edge ever ran here.
  }
}

/** Layers, the databases with their journals, identities, logs and the state of `dsec up`. */
function keptOnPurpose({ dataDir, runDir, layersDir }: Directories): readonly RegExp[] {
  const data = RegExp.escape(dataDir);
  const run = RegExp.escape(runDir);
  return [
    new RegExp(`^file ${RegExp.escape(layersDir)}(?:/|$)`),
    new RegExp(`^file ${data}/(?:control|build|edge)(?:$|/[^/]+$)`),
    new RegExp(`^file ${data}/control/`),
    new RegExp(`^file ${data}/edge/[^/]+/(?!sandboxes/.)[^/]+$`),
    new RegExp(
      `^file ${run}/(?:leaks-before\\.json|up\\.json|id-blocks|[a-z]+(?:-[a-z0-9]+)?\\.(?:json|log))$`,
    ),
  ];
}
