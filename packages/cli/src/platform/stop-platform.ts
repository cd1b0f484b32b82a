import { rm } from "node:fs/promises";
import { edgeArguments } from "./daemon-arguments.ts";
import { filesOf } from "./places.ts";
import { endProcess, isRunning, startDaemon } from "./processes.ts";
import { type EdgeState, removeState, type UpState } from "./state.ts";

const edgeGraceMs = 60_000;
const controlGraceMs = 20_000;
const edgeReadyMsMax = 60_000;

/**
 * Ends all sandboxes, the edges, then control, and removes the state. Resolves when everything is gone; what was gone before is no
 * error, and sandboxes whose edge died are ended too. Not to be cancelled half-way: it has bounds of its own.
 */
export async function stopPlatform(state: UpState, progress: (line: string) => void): Promise<void> {
  progress("ending sandboxes, edge and control");
  await Promise.all(state.edges.map(async (edge) => await endEdge(edge, progress)));
  await endProcess(state.control, controlGraceMs);
  removeState(state.runDir);
  await rm(filesOf(state.runDir).controlConfig, { force: true });
  for (const edge of state.edges) await rm(edge.config, { force: true });
}

/** With all of its sandboxes. An edge that died is started once more for that: only an edge knows what its node holds. */
async function endEdge(edge: EdgeState, progress: (line: string) => void): Promise<void> {
  if (isRunning(edge)) {
    await endProcess(edge, edgeGraceMs, "SIGINT");
    return;
  }
  const options = { name: "edge", logFile: edge.log, readyMsMax: edgeReadyMsMax, graceMs: edgeGraceMs };
  const argv = edgeArguments(edge.config, { end: true });
  const again = await startDaemon({ ...options, argv, onProgress: progress }, new AbortController().signal);
  await endProcess(again, edgeGraceMs, "SIGINT");
}
