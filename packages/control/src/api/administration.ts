import { CreateKey, CreateProject, ImportLayer, routes } from "@dsec/contracts";
import { addRoute } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { callerOf } from "./caller.ts";
import type { ControlContext } from "./context.ts";

/** Projects, keys, nodes: for admins. */
export function addAdministrationRoutes(app: FastifyInstance, context: ControlContext): void {
  const { projects, joins, watcher } = context;
  addRoute(app, routes.listProjects, { summary: "List projects" }, async () => ({
    items: await projects.list(),
  }));
  addRoute(
    app,
    routes.createProject,
    { body: CreateProject, summary: "Create a project" },
    async (request, reply) => {
      return await reply.code(201).send(await projects.create(request.body as CreateProject));
    },
  );
  addRoute(app, routes.listKeys, { summary: "List keys" }, async () => ({
    items: await projects.listKeys(),
  }));
  addRoute(app, routes.createKey, { body: CreateKey, summary: "Create a key" }, async (request, reply) => {
    return await reply.code(201).send(await projects.createKey(request.body as CreateKey));
  });
  addRoute(app, routes.revokeKey, { summary: "Revoke a key" }, async (request, reply) => {
    await projects.revokeKey((request.params as { readonly key: string }).key);
    return await reply.code(204).send();
  });
  addRoute(app, routes.listNodes, { summary: "List nodes" }, async () => {
    await context.refreshNodes();
    return { items: watcher.views() };
  });
  addRoute(
    app,
    routes.createJoinToken,
    { summary: "Make a token with which edges join" },
    async (_request, reply) => {
      return await reply.code(201).send(await joins.createToken());
    },
  );
}

/** What the fleet has: capabilities and layers. */
export function addFleetRoutes(app: FastifyInstance, { fleet }: ControlContext): void {
  addRoute(app, routes.capabilities, { summary: "What this fleet can do" }, async () => fleet.capabilities());
  addRoute(app, routes.listLayers, { summary: "List layers" }, async (request, reply) => ({
    items: await fleet.listLayers(callerOf(request, reply)),
  }));
  addRoute(
    app,
    routes.importLayer,
    { body: ImportLayer, summary: "Make a layer of a directory" },
    async (request, reply) => {
      return await reply.code(201).send(await fleet.importLayer(callerOf(request, reply), request.body));
    },
  );
}
