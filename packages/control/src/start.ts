import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";
import {
  Background,
  ClaimSigner,
  createAuthority,
  createHttpServer,
  createLog,
  createRequest,
  type KeyPair,
  type Log,
  signRequest,
} from "@dsec/kit";
import { addAdministrationRoutes } from "./api/administration.ts";
import { addClusterRoutes } from "./api/cluster.ts";
import type { ControlContext } from "./api/context.ts";
import { addForwardedRoutes } from "./api/forward.ts";
import { ControlMetrics } from "./api/metrics.ts";
import { addOpenRoutes } from "./api/open.ts";
import { addSandboxRoutes } from "./api/sandboxes.ts";
import { serveEventStreams } from "./api/stream.ts";
import { Creator } from "./app/create.ts";
import { Fleet } from "./app/fleet.ts";
import { Joins } from "./app/join.ts";
import { Projects } from "./app/projects.ts";
import type { ControlConfig } from "./config.ts";
import { Authenticator } from "./iam/authenticate.ts";
import { Edges } from "./nodes/edges.ts";
import { type Database, openDatabase } from "./store/database.ts";
import { announceInstance, listNodes } from "./store/nodes.ts";
import { settingOr } from "./store/settings.ts";
import { NodeWatcher } from "./watcher/nodes.ts";

/** A running control instance. */
export interface Control extends AsyncDisposable {
  /** The public API. */
  readonly url: string;
  /** Where edges join. */
  readonly clusterUrl: string;
  /** The first admin key, only when this start made it. */
  readonly bootstrapKey: string | undefined;
}

const announcePeriodMs = 5_000;
const instanceSilentMs = 30_000;

/** Starts every part of control; resolves once it serves. Whatever fails, what was started is ended. */
export async function startControl(config: ControlConfig): Promise<Control> {
  await using held = new AsyncDisposableStack();
  const log = createLog("control", {
    level: config.logLevel,
    ...(config.logFile === undefined ? {} : { file: config.logFile }),
  });
  const database = held.adopt(await openDatabase(config.dataDir), async (opened) => await opened.destroy());
  const secrets = await loadSecrets(database);
  const signer = new ClaimSigner(createPrivateKey(secrets.claimKey));
  const watcher = new NodeWatcher();
  const edges = held.use(
    new Edges(
      watcher,
      {
        key: secrets.client.privateKey,
        certificate: secrets.client.certificate,
        authority: secrets.authority.certificate,
      },
      signer,
    ),
  );
  const background = held.use(new Background(log));
  const clusterTls = await member(secrets.authority, "control-server", config.clusterHosts);
  const address: { cluster?: string } = {};
  const controls = async (): Promise<string[]> =>
    await announceInstance(database, address.cluster ?? "", Date.now(), instanceSilentMs);
  const refreshNodes = async (): Promise<void> => watcher.know(await listNodes(database));
  const context = contextOf(config, {
    database,
    secrets,
    signer,
    watcher,
    edges,
    log,
    controls,
    refreshNodes,
  });
  await refreshNodes();
  const bootstrapKey = (await context.projects.bootstrap())?.secret;
  if (bootstrapKey !== undefined && config.bootstrapKeyFile !== undefined) {
    mkdirSync(dirname(config.bootstrapKeyFile), { recursive: true });
    writeFileSync(config.bootstrapKeyFile, `${bootstrapKey}\n`, { mode: 0o600 });
  }
  address.cluster = await serveCluster(held, config, context, {
    tls: clusterTls,
    authority: secrets.authority.certificate,
    log,
  });
  const url = await serveApi(held, config, context);
  await controls();
  background.every("announce", announcePeriodMs, async () => {
    await controls();
    await refreshNodes();
  });
  log.info({ url, clusterUrl: address.cluster }, "control started");
  const owned = held.move();
  return {
    url,
    clusterUrl: address.cluster,
    bootstrapKey,
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  };
}

interface Parts
  extends Pick<ControlContext, "signer" | "watcher" | "edges" | "log" | "controls" | "refreshNodes"> {
  readonly database: Database;
  readonly secrets: Secrets;
}

function contextOf(config: ControlConfig, parts: Parts): ControlContext {
  const { database, secrets, watcher, edges, controls } = parts;
  const claimKey = createPublicKey(secrets.claimKey).export({ type: "spki", format: "pem" }).toString();
  return {
    authenticator: new Authenticator(database, config.keyCacheMs),
    creator: new Creator(watcher, edges, {
      candidates: config.placementCandidates,
      roundsMax: config.placementRoundsMax,
    }),
    fleet: new Fleet(watcher, edges),
    joins: new Joins({ database, watcher, authority: secrets.authority, claimKey, controls }),
    projects: new Projects(database),
    edges,
    watcher,
    metrics: new ControlMetrics(watcher),
    signer: parts.signer,
    log: parts.log,
    controls,
    refreshNodes: parts.refreshNodes,
    batchPerNode: config.batchPerNode,
  };
}

interface Secrets {
  readonly authority: KeyPair;
  readonly client: KeyPair;
  /** Ed25519, PKCS 8 PEM. */
  readonly claimKey: string;
}

/** The authority, the claim key and control's own certificate: made once for the whole platform, kept in the store. */
async function loadSecrets(database: Database): Promise<Secrets> {
  const authority = JSON.parse(
    await settingOr(database, "authority", async () => JSON.stringify(await createAuthority())),
  ) as KeyPair;
  const client = JSON.parse(
    await settingOr(database, "client", async () => JSON.stringify(await member(authority, "control", []))),
  ) as KeyPair;
  const claimKey = await settingOr(database, "claim-key", async () =>
    generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  );
  return { authority, client, claimKey };
}

async function member(authority: KeyPair, commonName: string, hosts: readonly string[]): Promise<KeyPair> {
  const { privateKey, request } = await createRequest(commonName);
  return { privateKey, certificate: await signRequest(authority, request, { commonName, hosts }) };
}

async function serveCluster(
  held: AsyncDisposableStack,
  config: ControlConfig,
  context: ControlContext,
  options: { readonly tls: KeyPair; readonly authority: string; readonly log: Log },
): Promise<string> {
  // The authority goes along, so that an edge can pin it by the fingerprint in its token.
  const cert = `${options.tls.certificate}\n${options.authority}`;
  const app = createHttpServer({
    log: options.log,
    tls: { key: options.tls.privateKey, cert, authority: options.authority, clients: "optional" },
  });
  held.defer(async () => await app.close());
  addClusterRoutes(app, context);
  await app.listen({ ...config.clusterListen });
  const { port } = app.server.address() as AddressInfo;
  return `https://${hostText(config.clusterHosts[0] ?? config.clusterListen.host)}:${port}`;
}

async function serveApi(
  held: AsyncDisposableStack,
  config: ControlConfig,
  context: ControlContext,
): Promise<string> {
  const app = createHttpServer({ log: context.log });
  app.addHook("onResponse", (request, reply, done) => {
    context.metrics.answered(request.routeOptions.url ?? "none", reply.statusCode, reply.elapsedTime);
    done();
  });
  addSandboxRoutes(app, context);
  addAdministrationRoutes(app, context);
  addOpenRoutes(app, context);
  await addForwardedRoutes(app, context);
  const sockets = serveEventStreams(app.server, context);
  held.defer(async () => {
    for (const client of sockets.clients) client.terminate();
    sockets.close();
    await app.close();
  });
  await app.listen({ ...config.listen });
  const { port } = app.server.address() as AddressInfo;
  return `http://${hostText(config.listen.host)}:${port}`;
}

function hostText(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
