import { routes } from "@dsec/contracts";
import { addRoute } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import type { ControlContext } from "./context.ts";
import { openApiDocument } from "./openapi.ts";

/** What needs no key: health, metrics, the API's description. */
export function addOpenRoutes(app: FastifyInstance, context: ControlContext): void {
  addRoute(app, routes.health, { summary: "The process is alive" }, async () => ({ status: "ok" }));
  addRoute(app, routes.ready, { summary: "At least one node is healthy" }, async (_request, reply) => {
    const ready = context.watcher.ids().some((id) => context.watcher.healthOf(id) === "healthy");
    return await reply.code(ready ? 200 : 503).send({ ready });
  });
  addRoute(app, routes.metrics, { summary: "Prometheus metrics" }, async (_request, reply) => {
    return await reply
      .type(context.metrics.registry.contentType)
      .send(await context.metrics.registry.metrics());
  });
  const document = openApiDocument();
  addRoute(app, routes.openapi, { summary: "This description" }, async () => document);
}
