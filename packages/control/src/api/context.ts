import type { Log } from "@dsec/kit";
import type { Creator } from "../app/create.ts";
import type { Fleet } from "../app/fleet.ts";
import type { Instances } from "../app/instances.ts";
import type { Joins } from "../app/join.ts";
import type { Projects } from "../app/projects.ts";
import type { Authenticator } from "../iam/authenticate.ts";
import type { Edges } from "../nodes/edges.ts";
import type { NodeWatcher } from "../watcher/nodes.ts";
import type { ControlMetrics } from "./metrics.ts";

/** The parts of control that its API calls. */
export interface ControlContext {
  readonly authenticator: Authenticator;
  readonly creator: Creator;
  readonly fleet: Fleet;
  readonly joins: Joins;
  readonly projects: Projects;
  readonly edges: Edges;
  readonly watcher: NodeWatcher;
  readonly metrics: ControlMetrics;
  readonly log: Log;
  readonly instances: Instances;
  /** Learns nodes that joined through another instance. */
  readonly refreshNodes: () => Promise<void>;
  readonly batchPerNode: number;
  readonly streamKeepAliveMs: number;
}
