import assert from "node:assert/strict";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Authenticator } from "../iam/authenticate.ts";
import type { Principal } from "../iam/decide.ts";

/** Who calls, and until when anybody waits for the answer. */
export interface Caller {
  readonly principal: Principal;
  readonly requestId: string;
  /** Aborts when the caller's connection ends before the answer. */
  readonly signal: AbortSignal;
}

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | undefined;
  }
}

/** Authenticates every request before its body is read, as its route's `auth` says. A route that says nothing is nobody's. */
export function authenticateRequests(app: FastifyInstance, authenticator: Authenticator): void {
  app.decorateRequest("principal", undefined);
  app.addHook("onRequest", async (request) => {
    if (request.is404) return;
    const { auth } = request.routeOptions.config;
    assert(auth !== undefined, `route ${request.routeOptions.url} does not say who may call it`);
    if (auth !== "none")
      request.principal = await authenticator.principal(request.headers.authorization, auth);
  });
}

/** The caller of a route that is not open to everyone. */
export function callerOf(request: FastifyRequest, reply: FastifyReply): Caller {
  assert(request.principal !== undefined, "an open route has no caller");
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort(new Error("the caller is gone"));
  });
  return { principal: request.principal, requestId: request.id, signal: controller.signal };
}
