import { createPrivateKey } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Background, ClaimSigner, createLog, type Log } from "@dsec/kit";
import type { ControlContext } from "./api/context.ts";
import { ControlMetrics } from "./api/metrics.ts";
import { serveApi, serveCluster } from "./api/serve.ts";
import { Creator } from "./app/create.ts";
import { Fleet } from "./app/fleet.ts";
import { Instances } from "./app/instances.ts";
import { Joins } from "./app/join.ts";
import { Projects } from "./app/projects.ts";
import { loadSecrets, newMember, type PlatformSecrets, publicClaimKey } from "./app/secrets.ts";
import type { ControlConfig } from "./config.ts";
import { Authenticator } from "./iam/authenticate.ts";
import { Edges } from "./nodes/edges.ts";
import { type Database, openDatabase } from "./store/database.ts";
import { listNodes } from "./store/nodes.ts";
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

/** Starts every part of control; resolves once it serves. Whatever fails, what was started is ended. */
export async function startControl(config: ControlConfig): Promise<Control> {
  await using held = new AsyncDisposableStack();
  const log = createLog("control", {
    level: config.logLevel,
    ...(config.logFile === undefined ? {} : { file: config.logFile }),
  });
  const database = held.adopt(await openDatabase(config), async (opened) => await opened.destroy());
  const secrets = await loadSecrets(database);
  const watcher = new NodeWatcher();
  const edges = held.use(openEdges(watcher, secrets));
  const background = held.use(new Background(log));
  const instances = new Instances(database);
  const context = contextOf(config, { database, secrets, watcher, edges, instances, log });
  await context.refreshNodes();
  const bootstrapKey = await bootstrap(context.projects, config.bootstrapKeyFile);
  const authority = secrets.authority.certificate;
  const tls = await newMember(secrets.authority, "control-server", config.clusterHosts);
  const cluster = held.use(await serveCluster(config, context, { tls, authority }));
  await instances.enter(cluster.url);
  const api = held.use(await serveApi(config, context));
  background.every("announce", announcePeriodMs, async () => {
    await instances.announce();
    await context.refreshNodes();
  });
  log.info({ url: api.url, clusterUrl: cluster.url }, "control started");
  const owned = held.move();
  return {
    url: api.url,
    clusterUrl: cluster.url,
    bootstrapKey,
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  };
}

interface Parts extends Pick<ControlContext, "watcher" | "edges" | "instances"> {
  readonly database: Database;
  readonly secrets: PlatformSecrets;
  readonly log: Log;
}

function contextOf(config: ControlConfig, parts: Parts): ControlContext {
  const { database, secrets, watcher, edges, instances, log } = parts;
  return {
    authenticator: new Authenticator(database, config.keyCacheMs),
    creator: new Creator(watcher, edges, {
      candidates: config.placementCandidates,
      roundsMax: config.placementRoundsMax,
    }),
    fleet: new Fleet(watcher, edges),
    joins: new Joins({
      database,
      watcher,
      authority: secrets.authority,
      claimKey: publicClaimKey(secrets),
      instances,
    }),
    projects: new Projects(database),
    edges,
    watcher,
    metrics: new ControlMetrics(watcher),
    log,
    instances,
    refreshNodes: async () => watcher.know(await listNodes(database)),
    batchPerNode: config.batchPerNode,
    streamKeepAliveMs: config.streamKeepAliveMs,
  };
}

function openEdges(watcher: NodeWatcher, secrets: PlatformSecrets): Edges {
  const identity = {
    key: secrets.client.privateKey,
    certificate: secrets.client.certificate,
    authority: secrets.authority.certificate,
  };
  return new Edges(watcher, identity, new ClaimSigner(createPrivateKey(secrets.claimKey)));
}

/** The first key of an empty store, also written to `file` when there is one. */
async function bootstrap(projects: Projects, file: string | undefined): Promise<string | undefined> {
  const keep = (secret: string): void => {
    if (file === undefined) return;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${secret}\n`, { mode: 0o600, flush: true });
  };
  return (await projects.bootstrap(keep))?.secret;
}
