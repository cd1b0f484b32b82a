import type { Readable } from "node:stream";
import { isSandboxId, nodeOf, PlatformError, type Route, routes, sandboxNotFound } from "@dsec/contracts";
import { addRoute } from "@dsec/kit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Dispatcher } from "undici";
import { callerOf } from "./caller.ts";
import type { ControlContext } from "./context.ts";
import { collectSmall } from "./small-body.ts";

/** Headers that go on to the edge, and those that come back from it. Keys and cookies never do. */
const requestHeaders = ["content-type", "content-length", "idempotency-key", "range"];
const answerHeaders = [
  "content-type",
  "content-length",
  "content-disposition",
  "retry-after",
  "dsec-offset",
  "dsec-next-offset",
  "dsec-dropped",
  "dsec-ended",
];

/**
 * Everything about one sandbox: authenticated here, then passed to the edge that its id names, large bodies as streams. The edge validates
 * and checks the project.
 */
export async function addForwardedRoutes(app: FastifyInstance, context: ControlContext): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    for (const route of Object.values<Route>(routes)) {
      if (!route.edge || !route.path.startsWith("/v1/sandboxes/:sandbox")) continue;
      addRoute(scope, route, {}, async (request, reply) => await forward(context, request, reply));
    }
  });
}

async function forward(
  context: ControlContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = callerOf(request, reply);
  const { sandbox } = request.params as { readonly sandbox: string };
  const edge = isSandboxId(sandbox) ? context.edges.find(nodeOf(sandbox)) : undefined;
  if (!isSandboxId(sandbox) || edge === undefined) throw sandboxNotFound(sandbox);
  const nodeId = nodeOf(sandbox);
  if (context.watcher.healthOf(nodeId) === "lost")
    throw context.edges.unreachable(nodeId, new Error("no heartbeats"));
  try {
    const body = request.body as Readable | null | undefined;
    const answer = await edge.call({
      ...caller,
      method: request.method as Dispatcher.HttpMethod,
      path: request.url,
      headers: pick(request.headers, requestHeaders),
      body: request.method === "GET" || !body ? null : await collectSmall(body, request.headers),
    });
    reply.code(answer.status).headers(pick(answer.headers, answerHeaders));
    return await reply.send(await collectSmall(answer.body, answer.headers));
  } catch (cause) {
    if (cause instanceof PlatformError) throw cause;
    caller.signal.throwIfAborted();
    throw context.edges.unreachable(nodeId, cause);
  }
}

function pick(
  all: Readonly<Record<string, string | string[] | undefined>>,
  names: readonly string[],
): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = all[name];
    if (typeof value === "string") picked[name] = value;
  }
  return picked;
}
