import { createPublicKey, randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import {
  type Backend,
  type Claim,
  CreateSandbox,
  claimHeader,
  edgeRoutes,
  headers,
  type JoinedNode,
  limits,
  type NodeId,
  newSandboxId,
  PlatformError,
  routes,
  type Sandbox,
  sandboxNotFound,
} from "@dsec/contracts";
import { addRoute, ClaimVerifier, createHttpServer, createRequest, digestOf, silentLog } from "@dsec/kit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Agent, request } from "undici";
import { WebSocketServer } from "ws";

export interface FakeEdgeOptions {
  readonly clusterUrl: string;
  readonly token: string;
  readonly backends?: readonly Backend[];
  readonly sandboxesMax?: number;
}

/** What goes wrong at the next creations; each entry is used once. */
export type CreateFault = "reject" | "drop-before" | "drop-after";

/**
 * An edge without sandboxes inside: joins, reports, and keeps records in memory, behind the real TLS, claims and shapes. Faults
 * happen on request.
 */
export class FakeEdge implements AsyncDisposable {
  readonly nodeId: NodeId;
  readonly sandboxes = new Map<string, Sandbox>();
  readonly createFaults: CreateFault[] = [];
  /** Headers that the last call carried. */
  lastHeaders: FastifyRequest["headers"] = {};
  /** Bytes of the last file written. */
  writtenBytes = 0;
  /** Creations wait for this long, in milliseconds. */
  createMs = 0;
  /** Called when a creation's connection breaks on request. */
  onDrop: () => Promise<void> = async () => undefined;
  /** The event streams that control has opened. */
  readonly streams = new WebSocketServer({ noServer: true });
  readonly #options: FakeEdgeOptions;
  readonly #verifier: ClaimVerifier;
  readonly #byKey = new Map<string, { readonly requestDigest: string; readonly sandbox: Sandbox }>();
  readonly #cluster: Agent;
  readonly #joined: JoinedNode;
  readonly #privateKey: string;
  readonly #bootId = randomUUID();
  #app: FastifyInstance | undefined;
  #port = 0;
  #sequence = 0;
  #beating: NodeJS.Timeout | undefined;

  private constructor(options: FakeEdgeOptions, joined: JoinedNode, privateKey: string) {
    this.#options = options;
    this.nodeId = joined.nodeId as NodeId;
    this.#joined = joined;
    this.#privateKey = privateKey;
    this.#verifier = new ClaimVerifier(createPublicKey(joined.claimKey));
    this.#cluster = new Agent({
      connect: {
        ca: joined.authority,
        key: privateKey,
        cert: joined.certificate,
        checkServerIdentity: () => undefined,
      },
    });
  }

  static async join(options: FakeEdgeOptions): Promise<FakeEdge> {
    const { privateKey, request: csr } = await createRequest("edge");
    const open = new Agent({ connect: { rejectUnauthorized: false } });
    const answer = await request(`${options.clusterUrl}${routes.joinNode.path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        token: options.token,
        hostname: "fake",
        url: "https://127.0.0.1:1",
        backends: options.backends ?? ["container"],
        capabilities: [],
        csr,
      }),
      dispatcher: open,
    });
    const body = (await answer.body.json()) as JoinedNode;
    await open.close();
    if (answer.statusCode !== 200) throw new Error(JSON.stringify(body));
    const edge = new FakeEdge(options, body, privateKey);
    await edge.start();
    return edge;
  }

  /** Serves, again after `stop` at the same port, and reports every period. */
  async start(): Promise<void> {
    const { certificate, authority } = this.#joined;
    const app = createHttpServer({
      log: silentLog(),
      tls: { key: this.#privateKey, cert: certificate, authority },
    });
    this.#addRoutes(app);
    app.server.on("upgrade", (upgrade, socket, head) => {
      this.#verifier.verify(upgrade.headers[claimHeader] as string);
      this.streams.handleUpgrade(upgrade, socket, head, (stream) => this.streams.emit("connection", stream));
    });
    await app.listen({ host: "127.0.0.1", port: this.#port });
    this.#port = (app.server.address() as AddressInfo).port;
    this.#app = app;
    await this.beat();
    this.#beating = setInterval(() => void this.beat().catch(() => undefined), limits.heartbeatPeriodMs);
  }

  /** Ends like a killed edge: connections break, records stay. */
  async stop(): Promise<void> {
    clearInterval(this.#beating);
    for (const stream of this.streams.clients) stream.terminate();
    const app = this.#app;
    this.#app = undefined;
    await app?.close();
  }

  get isServing(): boolean {
    return this.#app !== undefined;
  }

  async beat(): Promise<void> {
    this.#sequence += 1;
    const answer = await this.post(`/v1/nodes/${this.nodeId}/heartbeat`, {
      nodeId: this.nodeId,
      bootId: this.#bootId,
      sequence: this.#sequence,
      url: `https://127.0.0.1:${this.#port}`,
      load: this.#load(),
      backends: this.#options.backends ?? ["container"],
      capabilities: [{ name: "fake", available: true, reason: null }],
    });
    if (answer !== 200) throw new Error(`control refused a heartbeat: ${answer}`);
  }

  /** Calls the cluster listener with this edge's certificate; the status of the answer. */
  async post(path: string, body: object): Promise<number> {
    const answer = await request(`${this.#options.clusterUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      dispatcher: this.#cluster,
    });
    await answer.body.dump();
    return answer.statusCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#cluster.destroy();
  }

  #load(): object {
    return {
      sandboxes: this.sandboxes.size,
      creating: 0,
      sandboxesMax: this.#options.sandboxesMax ?? 1_000,
      cpuCores: 2,
      memoryTotalMib: 8_192,
      memoryAvailableMib: 4_096,
      memoryPressure: 0,
      cpuPressure: 0,
      diskFreeMib: 10_240,
      admitting: true,
    };
  }

  #addRoutes(app: FastifyInstance): void {
    app.addHook("onRequest", async (call) => {
      this.lastHeaders = call.headers;
    });
    app.addContentTypeParser("application/octet-stream", (_request, payload, done) => done(null, payload));
    addRoute(
      app,
      routes.createSandbox,
      { body: CreateSandbox },
      async (call, reply) => await this.#create(call, reply),
    );
    addRoute(app, edgeRoutes.lookupIdempotency, {}, async (call) => {
      const { project } = this.#claim(call);
      const record = this.#byKey.get(`${project} ${(call.params as { readonly key: string }).key}`);
      if (record === undefined) throw new PlatformError("not_found", "Cannot find the key");
      return record;
    });
    addRoute(app, routes.listSandboxes, {}, async (call) => {
      const { project } = this.#claim(call);
      const { limit, cursor = "" } = call.query as { readonly limit: string; readonly cursor?: string };
      const all = [...this.sandboxes.values()]
        .filter((sandbox) => sandbox.project === project && sandbox.id > cursor)
        .toSorted((one, two) => (one.id < two.id ? -1 : 1));
      const items = all.slice(0, Number(limit));
      return { items, next: all.length > items.length ? items.at(-1)?.id : null };
    });
    addRoute(app, routes.getSandbox, {}, async (call) => this.#find(call));
    addRoute(app, routes.deleteSandbox, {}, async (call) => {
      const sandbox = this.#find(call);
      this.sandboxes.delete(sandbox.id);
      return { ...sandbox, state: "stopped" };
    });
    addRoute(app, routes.exec, {}, async (call) => {
      this.#find(call);
      return { echo: call.body };
    });
    addRoute(app, routes.writeFile, {}, async (call) => {
      this.#find(call);
      this.writtenBytes = 0;
      for await (const chunk of call.body as AsyncIterable<Buffer>) this.writtenBytes += chunk.length;
      return { query: call.query };
    });
    addRoute(app, routes.readFile, {}, async (call, reply) => {
      this.#find(call);
      return await reply
        .header(headers.outputOffset, "7")
        .type("application/octet-stream")
        .send(Buffer.alloc(3_000_000, 1));
    });
  }

  async #create(call: FastifyRequest, reply: FastifyReply): Promise<Sandbox | undefined> {
    const { project } = this.#claim(call);
    const fault = this.createFaults.shift();
    if (fault === "reject")
      throw new PlatformError("no_capacity", "Cannot create: full", { retryAfterMs: 10 });
    if (fault === "drop-before") return this.#drop(call, reply);
    if (this.createMs > 0) await new Promise((resolve) => setTimeout(resolve, this.createMs));
    const key = `${project} ${String(call.headers[headers.idempotencyKey])}`;
    const requestDigest = digestOf(call.body);
    const known = this.#byKey.get(key);
    if (known !== undefined && known.requestDigest !== requestDigest)
      throw new PlatformError("conflict", "Cannot create: the idempotency key was used with another request");
    const sandbox = known?.sandbox ?? this.#record(project, call.body as CreateSandbox);
    this.#byKey.set(key, { requestDigest, sandbox });
    if (fault === "drop-after") return this.#drop(call, reply);
    return await reply.code(201).send(sandbox);
  }

  #record(project: string, body: CreateSandbox): Sandbox {
    const now = Date.now();
    const sandbox: Sandbox = {
      id: newSandboxId(this.nodeId),
      project,
      node: this.nodeId,
      backend: body.backend ?? "container",
      state: "running",
      end: null,
      message: null,
      environment: { base: "default", toolkits: [] },
      cpuCores: body.cpuCores,
      memoryMib: body.memoryMib,
      diskMib: body.diskMib,
      pidsMax: body.pidsMax,
      user: "root",
      labels: body.labels ?? {},
      job: body.job ?? null,
      idleTimeoutMs: body.idleTimeoutMs,
      createdAtMs: now,
      idleExpiresAtMs: now + body.idleTimeoutMs,
      lifetimeExpiresAtMs: null,
      endedAtMs: null,
    };
    this.sandboxes.set(sandbox.id, sandbox);
    return sandbox;
  }

  #claim(call: FastifyRequest): Claim {
    return this.#verifier.verify(call.headers[claimHeader] as string | undefined);
  }

  #find(call: FastifyRequest): Sandbox {
    const { project } = this.#claim(call);
    const { sandbox: id } = call.params as { readonly sandbox: string };
    const sandbox = this.sandboxes.get(id);
    if (sandbox?.project !== project) throw sandboxNotFound(id);
    return sandbox;
  }

  /** The connection breaks without an answer. */
  #drop(call: FastifyRequest, reply: FastifyReply): undefined {
    reply.hijack();
    call.raw.socket.destroy();
    void this.onDrop();
  }
}
