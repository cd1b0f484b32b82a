import { type Claim, claimHeader, PlatformError, type Route } from "@dsec/contracts";
import { addRoute, type RouteSchemas } from "@dsec/kit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { EdgeContext } from "./context.ts";

/** A call that control has vouched for. */
export interface EdgeCall {
  readonly claim: Claim;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Aborts when the caller's connection ends before the answer. */
  readonly signal: AbortSignal;
}

/** Registers a route that needs a claim; admin routes need an admin's. */
export function addClaimedRoute(
  app: FastifyInstance,
  context: EdgeContext,
  definition: { readonly route: Route; readonly schemas?: RouteSchemas },
  handler: (call: EdgeCall) => Promise<unknown>,
): void {
  const { route, schemas = {} } = definition;
  addRoute(app, route, schemas, async (request, reply) => {
    const claim = claimOf(context, request, route);
    const controller = new AbortController();
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) controller.abort(new Error("the caller is gone"));
    });
    return await handler({ claim, request, reply, signal: controller.signal });
  });
}

/** The claim of a request, or `unauthenticated` or `forbidden`. */
export function claimOf(context: EdgeContext, request: Pick<FastifyRequest, "headers">, route: Route): Claim {
  const header = request.headers[claimHeader];
  const claim = context.verifier.verify(typeof header === "string" ? header : undefined);
  if (route.auth === "admin" && !claim.admin)
    throw new PlatformError("forbidden", "Cannot do this: the key is not an admin's");
  return claim;
}
