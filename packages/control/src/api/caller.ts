import type { Route } from "@dsec/contracts";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../iam/decide.ts";
import type { ControlContext } from "./context.ts";

/** Who calls, and until when anybody waits for the answer. */
export interface Caller {
  readonly principal: Principal;
  readonly requestId: string;
  /** Aborts when the caller's connection ends before the answer. */
  readonly signal: AbortSignal;
}

/** Authenticates a request for a route of class `auth`. */
export async function callerOf(
  context: ControlContext,
  auth: Route["auth"],
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller> {
  const principal = await context.authenticator.principal(request.headers.authorization, auth);
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort(new Error("the caller is gone"));
  });
  return { principal, requestId: request.id, signal: controller.signal };
}
