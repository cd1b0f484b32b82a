import { routes } from "@dsec/contracts";
import { addRoute, createHttpServer } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { addCommandRoutes } from "./commands.ts";
import type { EdgeContext } from "./context.ts";
import { addFileRoutes } from "./files.ts";
import { addLayerRoutes } from "./layers.ts";
import { addSandboxRoutes } from "./sandboxes.ts";
import { serveEventStreams } from "./stream.ts";

export interface TlsMaterial {
  /** PEM. */
  readonly key: string;
  readonly cert: string;
  readonly authority: string;
}

/** The edge's API, over mutual TLS when given its material; the caller listens and closes. Every route but health and metrics needs a claim. */
export async function createEdgeServer(context: EdgeContext, tls?: TlsMaterial): Promise<FastifyInstance> {
  const app = createHttpServer({ log: context.log, ...(tls === undefined ? {} : { tls }) });
  app.addHook("onResponse", (request, reply, done) => {
    context.metrics.answered(request.routeOptions.url ?? "none", reply.statusCode, reply.elapsedTime);
    done();
  });
  addSandboxRoutes(app, context);
  addCommandRoutes(app, context);
  addLayerRoutes(app, context);
  await addFileRoutes(app, context);
  addRoute(app, routes.health, {}, async () => ({ status: "ok" }));
  addRoute(app, routes.metrics, {}, async (_request, reply) => {
    return await reply
      .type(context.metrics.registry.contentType)
      .send(await context.metrics.registry.metrics());
  });
  serveEventStreams(app, context);
  return app;
}
