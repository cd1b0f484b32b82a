import {
  CreateSandbox,
  edgeRoutes,
  headers,
  ListSandboxes,
  limits,
  PlatformError,
  routes,
  SetLifetime,
} from "@dsec/contracts";
import { parseQuery } from "@dsec/kit";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { addClaimedRoute } from "./claimed-route.ts";
import type { EdgeContext } from "./context.ts";

/** Creation, lists, life time and end. */
export function addSandboxRoutes(app: FastifyInstance, context: EdgeContext): void {
  const { sandboxes } = context;
  addClaimedRoute(
    app,
    context,
    { route: routes.createSandbox, schemas: { body: CreateSandbox } },
    async (call) => {
      const { body } = call.request;
      const sandbox = await sandboxes.create(call.claim, body as CreateSandbox, keyOf(call.request));
      return await call.reply.code(201).send(sandbox);
    },
  );
  addClaimedRoute(
    app,
    context,
    { route: edgeRoutes.lookupIdempotency },
    async ({ claim, request }) =>
      await sandboxes.lookup(claim, (request.params as { readonly key: string }).key),
  );
  addClaimedRoute(app, context, { route: routes.listSandboxes }, async ({ claim, request }) =>
    sandboxes.list(claim, parseQuery(ListSandboxes, request.query)),
  );
  addClaimedRoute(app, context, { route: routes.getSandbox }, async ({ claim, request }) =>
    sandboxes.get(claim, sandboxOf(request)),
  );
  addClaimedRoute(
    app,
    context,
    { route: routes.deleteSandbox },
    async ({ claim, request }) => await sandboxes.remove(claim, sandboxOf(request)),
  );
  addClaimedRoute(
    app,
    context,
    { route: routes.setLifetime, schemas: { body: SetLifetime } },
    async ({ claim, request }) =>
      await sandboxes.setLifetime(claim, sandboxOf(request), request.body as SetLifetime),
  );
}

/** The id in the path, whatever it is: only the node's sandboxes know whether it exists. */
export function sandboxOf(request: FastifyRequest): string {
  return (request.params as { readonly sandbox: string }).sandbox;
}

function keyOf(request: FastifyRequest): string | undefined {
  const key = request.headers[headers.idempotencyKey];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || key.length === 0 || key.length > limits.idempotencyKeyLengthMax) {
    throw new PlatformError("invalid_request", "Wrong idempotency key");
  }
  return key;
}
