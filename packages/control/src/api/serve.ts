import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createHttpServer, type KeyPair } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import type { ControlConfig } from "../config.ts";
import { addAdministrationRoutes, addFleetRoutes } from "./administration.ts";
import { authenticateRequests } from "./caller.ts";
import { addClusterRoutes } from "./cluster.ts";
import type { ControlContext } from "./context.ts";
import { addForwardedRoutes } from "./forward.ts";
import { addOpenRoutes } from "./open.ts";
import { addSandboxRoutes } from "./sandboxes.ts";
import { addEventStreams } from "./stream.ts";

/** A listener; disposing it ends its connections. */
export interface Served extends AsyncDisposable {
  readonly url: string;
}

/** The public API at `config.listen`: HTTPS when a certificate is configured. */
export async function serveApi(config: ControlConfig, context: ControlContext): Promise<Served> {
  const { log, metrics } = context;
  const tls =
    config.tls === undefined
      ? undefined
      : {
          key: readFileSync(config.tls.keyFile, "utf8"),
          cert: readFileSync(config.tls.certificateFile, "utf8"),
        };
  const app = createHttpServer({ log, ...(tls === undefined ? {} : { tls }) });
  app.addHook("onResponse", (request, reply, done) => {
    metrics.answered(request.routeOptions.url ?? "none", reply.statusCode, reply.elapsedTime);
    done();
  });
  authenticateRequests(app, context.authenticator);
  addSandboxRoutes(app, context);
  addAdministrationRoutes(app, context);
  addFleetRoutes(app, context);
  addOpenRoutes(app, context);
  await addForwardedRoutes(app, context);
  const sockets = addEventStreams(app, context);
  const port = await listen(app, config.listen);
  return {
    url: `${tls === undefined ? "http" : "https"}://${hostText(config.listen.host)}:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const client of sockets.clients) client.terminate();
      sockets.close();
      await app.close();
    },
  };
}

/** Joins and heartbeats of edges at `config.clusterListen`, over TLS with the certificate `tls` of the authority. */
export async function serveCluster(
  config: ControlConfig,
  context: ControlContext,
  certificates: { readonly tls: KeyPair; readonly authority: string },
): Promise<Served> {
  const { tls, authority } = certificates;
  // The authority goes along, so that an edge can pin it by the fingerprint in its token.
  const cert = `${tls.certificate}\n${authority}`;
  const app = createHttpServer({
    log: context.log,
    tls: { key: tls.privateKey, cert, authority, clients: "optional" },
  });
  addClusterRoutes(app, context);
  const port = await listen(app, config.clusterListen);
  return {
    url: `https://${hostText(config.clusterHosts[0] ?? config.clusterListen.host)}:${port}`,
    [Symbol.asyncDispose]: async () => await app.close(),
  };
}

async function listen(
  app: FastifyInstance,
  at: { readonly host: string; readonly port: number },
): Promise<number> {
  try {
    await app.listen({ ...at });
  } catch (error) {
    await app.close();
    throw error;
  }
  return (app.server.address() as AddressInfo).port;
}

function hostText(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
