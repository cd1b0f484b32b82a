import { edgeRoutes, ImportLayer } from "@dsec/contracts";
import type { FastifyInstance } from "fastify";
import { addClaimedRoute } from "./claimed-route.ts";
import type { EdgeContext } from "./context.ts";

/** Layers of the store that this edge uses. */
export function addLayerRoutes(app: FastifyInstance, context: EdgeContext): void {
  addClaimedRoute(app, context, { route: edgeRoutes.listLayers }, async () => ({
    items: await context.layers.list(),
  }));
  addClaimedRoute(
    app,
    context,
    { route: edgeRoutes.importLayer, schemas: { body: ImportLayer } },
    async ({ request, reply, signal }) => {
      return await reply
        .code(201)
        .send(await context.layers.importDirectory(request.body as ImportLayer, signal));
    },
  );
}
