import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { NodeWatcher } from "../watcher/nodes.ts";

/** Metrics of a control instance; labels are bounded (routes, status classes, outcomes). */
export class ControlMetrics {
  readonly registry = new Registry();
  readonly #requests: Histogram<"route" | "status">;
  readonly #creations: Counter<"outcome">;

  constructor(watcher: NodeWatcher) {
    collectDefaultMetrics({ register: this.registry });
    this.#requests = new Histogram({
      name: "dsec_control_request_seconds",
      help: "Time to answer a request, by route and class of status.",
      labelNames: ["route", "status"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
      registers: [this.registry],
    });
    this.#creations = new Counter({
      name: "dsec_control_creations_total",
      help: "Creations by outcome (created or the error's code).",
      labelNames: ["outcome"],
      registers: [this.registry],
    });
    const nodes = new Gauge({
      name: "dsec_control_nodes",
      help: "Nodes by health.",
      labelNames: ["health"],
      registers: [this.registry],
      collect: () => {
        for (const health of ["healthy", "suspect", "lost"] as const) {
          nodes.set({ health }, watcher.ids().filter((id) => watcher.healthOf(id) === health).length);
        }
      },
    });
  }

  answered(route: string, status: number, milliseconds: number): void {
    this.#requests.observe({ route, status: `${Math.floor(status / 100)}xx` }, milliseconds / 1000);
  }

  created(outcome: string): void {
    this.#creations.inc({ outcome });
  }
}
