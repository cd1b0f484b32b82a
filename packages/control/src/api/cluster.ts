import type { TLSSocket } from "node:tls";
import { Heartbeat, JoinNode, PlatformError, routes } from "@dsec/contracts";
import { addRoute } from "@dsec/kit";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ControlContext } from "./context.ts";

/** What edges call: joining with a token, then heartbeats with their certificate. */
export function addClusterRoutes(app: FastifyInstance, context: ControlContext): void {
  addRoute(app, routes.joinNode, { body: JoinNode, summary: "An edge joins" }, async (request) => {
    return await context.joins.join(request.body as JoinNode, peerOf(request));
  });
  addRoute(app, routes.heartbeat, { body: Heartbeat, summary: "An edge reports" }, async (request) => {
    const heartbeat = request.body as Heartbeat;
    const { node } = request.params as { readonly node: string };
    if (node !== heartbeat.nodeId || peerOf(request) !== `edge-${node}`) {
      throw new PlatformError(
        "unauthenticated",
        "Cannot accept the heartbeat: show the certificate of that node",
      );
    }
    if (!context.watcher.isKnown(node)) await context.refreshNodes();
    if (!context.watcher.isKnown(node))
      throw new PlatformError("not_found", `Cannot find node "${node}": join again`);
    context.watcher.hear(heartbeat);
    return { controls: context.instances.urls };
  });
}

/** The common name of a client certificate of our authority, if one was shown. */
function peerOf(request: FastifyRequest): string | undefined {
  const socket = request.raw.socket as TLSSocket;
  if (!socket.authorized) return undefined;
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === "string" ? name : undefined;
}
