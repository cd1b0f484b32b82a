import { CreateKey, CreateProject, ImportLayer, routes } from "@dsec/contracts";
import { addRoute } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { callerOf } from "./caller.ts";
import type { ControlContext } from "./context.ts";

/** Projects, keys, nodes, layers: mostly for admins. */
export function addAdministrationRoutes(app: FastifyInstance, context: ControlContext): void {
  addRoute(app, routes.listProjects, { summary: "List projects" }, async (request, reply) => {
    await callerOf(context, "admin", request, reply);
    return { items: await context.projects.list() };
  });
  addRoute(
    app,
    routes.createProject,
    { body: CreateProject, summary: "Create a project" },
    async (request, reply) => {
      await callerOf(context, "admin", request, reply);
      return await reply.code(201).send(await context.projects.create(request.body as CreateProject));
    },
  );
  addRoute(app, routes.listKeys, { summary: "List keys" }, async (request, reply) => {
    await callerOf(context, "admin", request, reply);
    return { items: await context.projects.listKeys() };
  });
  addRoute(app, routes.createKey, { body: CreateKey, summary: "Create a key" }, async (request, reply) => {
    await callerOf(context, "admin", request, reply);
    return await reply.code(201).send(await context.projects.createKey(request.body as CreateKey));
  });
  addRoute(app, routes.revokeKey, { summary: "Revoke a key" }, async (request, reply) => {
    await callerOf(context, "admin", request, reply);
    await context.projects.revokeKey((request.params as { readonly key: string }).key);
    return await reply.code(204).send();
  });
  addRoute(app, routes.listNodes, { summary: "List nodes" }, async (request, reply) => {
    await callerOf(context, "admin", request, reply);
    await context.refreshNodes();
    return { items: context.watcher.views() };
  });
  addRoute(
    app,
    routes.createJoinToken,
    { summary: "Make a token with which edges join" },
    async (request, reply) => {
      await callerOf(context, "admin", request, reply);
      return await reply.code(201).send(await context.joins.createToken());
    },
  );
  addRoute(app, routes.capabilities, { summary: "What this fleet can do" }, async (request, reply) => {
    await callerOf(context, "member", request, reply);
    return context.fleet.capabilities();
  });
  addRoute(app, routes.listLayers, { summary: "List layers" }, async (request, reply) => {
    const caller = await callerOf(context, "member", request, reply);
    return { items: await context.fleet.listLayers(caller) };
  });
  addRoute(
    app,
    routes.importLayer,
    { body: ImportLayer, summary: "Make a layer of a directory" },
    async (request, reply) => {
      const caller = await callerOf(context, "admin", request, reply);
      return await reply.code(201).send(await context.fleet.importLayer(caller, request.body));
    },
  );
}
