import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostSnapshot } from "@dsec/edge";
import { lookAtHost } from "./leaks.ts";
import { standardPlaces } from "./places.ts";
import { startPlatform } from "./start-platform.ts";
import { isWhole, readState, type UpState } from "./state.ts";
import { stopPlatform } from "./stop-platform.ts";

/** The platform that a job runs on. Disposing ends it when it was started for the job alone. */
export interface JobPlatform extends AsyncDisposable {
  readonly state: UpState;
  /** How this host looked before the job: with the platform when it is left running, else without. */
  readonly lookBefore: HostSnapshot;
  /** It goes on running after the job. */
  readonly isLeft: boolean;
}

/** The platform of this machine when it runs or is to be kept, else one of its own with directories and ports of its own. */
export async function openPlatformForJob(
  options: { readonly keep: boolean; readonly progress: (line: string) => void },
  signal: AbortSignal,
): Promise<JobPlatform> {
  const standard = standardPlaces();
  const known = readState(standard.runDir);
  const isThere = known !== undefined && isWhole(known);
  if (isThere || options.keep) {
    const { state } = await startPlatform({ places: standard, edges: 1, progress: options.progress }, signal);
    return { state, lookBefore: lookAtHost(state), isLeft: true, [Symbol.asyncDispose]: async () => {} };
  }
  await using held = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "dsec-job-"));
  held.defer(() => rmSync(directory, { recursive: true, force: true }));
  // Control runs as another user and must reach its own directory below.
  chmodSync(directory, 0o711);
  const places = {
    runDir: join(directory, "run"),
    dataDir: join(directory, "data"),
    layersDir: standard.layersDir,
    apiPort: 0,
    clusterPort: 0,
  };
  const { state, lookBefore } = await startPlatform({ places, edges: 1, progress: options.progress }, signal);
  held.defer(async () => await stopPlatform(state, options.progress));
  const owned = held.move();
  return {
    state,
    lookBefore: lookBefore ?? lookAtHost(places),
    isLeft: false,
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  };
}
