import type { SandboxState } from "@dsec/contracts";
import { collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Metrics of an edge; labels are bounded (routes, status classes, states). */
export class EdgeMetrics {
  readonly registry = new Registry();
  readonly #requests: Histogram<"route" | "status">;

  constructor(counts: () => Partial<Record<SandboxState, number>>) {
    collectDefaultMetrics({ register: this.registry });
    this.#requests = new Histogram({
      name: "dsec_edge_request_seconds",
      help: "Time to answer a request, by route and class of status.",
      labelNames: ["route", "status"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
      registers: [this.registry],
    });
    const sandboxes = new Gauge({
      name: "dsec_edge_sandboxes",
      help: "Sandboxes of this node that are not over, by state.",
      labelNames: ["state"],
      registers: [this.registry],
      collect: () => {
        sandboxes.reset();
        for (const [state, count] of Object.entries(counts())) sandboxes.set({ state }, count);
      },
    });
  }

  answered(route: string, status: number, milliseconds: number): void {
    this.#requests.observe({ route, status: `${Math.floor(status / 100)}xx` }, milliseconds / 1000);
  }
}
