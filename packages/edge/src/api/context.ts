import type { ImportLayer, LayerManifest } from "@dsec/contracts";
import type { ClaimVerifier, Log } from "@dsec/kit";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { EdgeMetrics } from "./metrics.ts";

export interface LayersOfNode {
  list(): Promise<LayerManifest[]>;
  importDirectory(request: ImportLayer, signal: AbortSignal): Promise<LayerManifest>;
}

/** The parts of the edge that its API calls. */
export interface EdgeContext {
  readonly sandboxes: Sandboxes;
  readonly layers: LayersOfNode;
  readonly verifier: ClaimVerifier;
  readonly metrics: EdgeMetrics;
  readonly log: Log;
}
