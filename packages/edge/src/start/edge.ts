import { createPublicKey } from "node:crypto";
import { once } from "node:events";
import { chmodSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Backend, type Capability, isNodeId, localSocketName, PlatformError } from "@dsec/contracts";
import { ClaimVerifier, createLog, fingerprint, type Log } from "@dsec/kit";
import type { EdgeContext } from "../api/context.ts";
import { EdgeMetrics } from "../api/metrics.ts";
import { createEdgeServer } from "../api/server.ts";
import type { EdgeConfig } from "../config.ts";
import { Heartbeats } from "../control-link/heartbeats.ts";
import { joinControl } from "../control-link/join.ts";
import { type Membership, readMembership, writeMembership } from "../control-link/state.ts";
import type { Progress } from "../layers/store.ts";
import { type EdgeNode, startNode } from "./node.ts";

/** A running edge. Disposing it leaves its sandboxes alive, for the next edge of this data directory. */
export interface Edge extends AsyncDisposable {
  readonly nodeId: string;
  /** Where control reaches it. */
  readonly url: string;
  /** Ends all sandboxes and the spawner, and removes every trace of the node but its data. Dispose the edge afterwards. */
  endAll(): Promise<void>;
}

const joinTimeoutMs = 30_000;
const backends: readonly Backend[] = ["container"];
const capabilities: readonly Capability[] = [
  { name: "nestedNamespaces", available: false, reason: "namespaces inside a sandbox are refused" },
  { name: "diskQuota", available: false, reason: "this node has no quota driver" },
  { name: "network", available: false, reason: "sandboxes have a loopback device only" },
];

/**
 * Starts an edge: joins when it is not a member yet, takes over what lives on the node, serves, and tells control how it is. `progress`
 * hears of steps that take long; the signal ends a build of the default base. Whatever fails, what was started is ended and sandboxes are left as they are.
 */
export async function startEdge(
  config: EdgeConfig,
  progress: Progress = () => undefined,
  signal: AbortSignal = new AbortController().signal,
): Promise<Edge> {
  await using held = new AsyncDisposableStack();
  const log = createLog("edge", {
    level: config.logLevel,
    ...(config.logFile === undefined ? {} : { file: config.logFile }),
  });
  const port = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port;
  const url = `https://${hostText(config.advertisedHost ?? config.listen.host)}:${port}`;
  const membershipPath = join(config.dataDir, "edge", "membership.json");
  const membership = await beMember(config, membershipPath, url);
  const { nodeId } = membership;
  if (!isNodeId(nodeId)) throw new Error(`control gave the malformed node id "${nodeId}"`);
  const node = held.use(await startNode(config, nodeId, { log, progress, signal }));
  const localSocket = join(config.runDir, localSocketName(nodeId));
  await serve(held, { config, node, membership, log, port, localSocket });
  const heartbeats = held.use(
    new Heartbeats({
      membership,
      url,
      localSocket,
      backends,
      capabilities,
      load: () => node.sandboxes.load,
      onControls: (controls) => writeMembership(membershipPath, { ...membership, controls: [...controls] }),
      log,
    }),
  );
  log.info({ nodeId, url }, "edge started");
  const owned = held.move();
  return {
    nodeId,
    url,
    endAll: async () => {
      await heartbeats[Symbol.asyncDispose]();
      await node.endAll();
    },
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

/** The membership of this data directory; joins when there is none, or when the token is of another platform. */
async function beMember({ join: invitation }: EdgeConfig, path: string, url: string): Promise<Membership> {
  const known = readMembership(path);
  if (invitation === undefined) {
    if (known !== undefined) return known;
    throw new PlatformError(
      "invalid_request",
      "This edge is no member yet: /join is needed in its configuration",
    );
  }
  if (known !== undefined && invitation.token.includes(`_${fingerprint(known.authority)}_`)) {
    // Control may have moved since the edge ran last.
    return { ...known, controls: [...new Set([invitation.url, ...known.controls])] };
  }
  return joinControl(
    {
      clusterUrl: invitation.url,
      token: invitation.token,
      path,
      hostname: hostname(),
      url,
      backends,
      capabilities,
    },
    AbortSignal.timeout(joinTimeoutMs),
  );
}

async function serve(
  held: AsyncDisposableStack,
  parts: {
    readonly config: EdgeConfig;
    readonly node: EdgeNode;
    readonly membership: Membership;
    readonly log: Log;
    readonly port: number;
    readonly localSocket: string;
  },
): Promise<void> {
  const { node, membership, log } = parts;
  const context: EdgeContext = {
    sandboxes: node.sandboxes,
    layers: {
      list: async () => node.layers.list(),
      importDirectory: async ({ kind, name, source }, signal) =>
        node.layers.importDirectory(
          { kind, name, directory: source.directory, provenance: "imported from a directory" },
          (step) => log.info({ step }, "layer import"),
          signal,
        ),
    },
    verifier: new ClaimVerifier(createPublicKey(membership.claimKey)),
    metrics: new EdgeMetrics(() => node.sandboxes.counts()),
    log,
  };
  const tls = { key: membership.privateKey, cert: membership.certificate, authority: membership.authority };
  const app = await createEdgeServer(context, tls);
  held.defer(async () => app.close());
  await app.listen({ host: parts.config.listen.host, port: parts.port });
  const local = await createEdgeServer(context);
  held.defer(async () => local.close());
  rmSync(parts.localSocket, { force: true }); // Of an edge that was killed.
  await local.listen({ path: parts.localSocket });
  // Whoever connects needs control's signature for every call all the same.
  chmodSync(parts.localSocket, 0o666);
}

/** A port that is free now: control must know the address before the certificate exists that is served there. */
async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function hostText(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
