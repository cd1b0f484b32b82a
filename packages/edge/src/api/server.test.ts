import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { type TestContext, test } from "node:test";
import { claimHeader, edgeRoutes, type Route, routes } from "@dsec/contracts";
import {
  ClaimSigner,
  ClaimVerifier,
  createAuthority,
  createRequest,
  signRequest,
  silentLog,
} from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { plainRequest, TestNode } from "../sandbox/testing/test-node.ts";
import { EdgeMetrics } from "./metrics.ts";
import { createEdgeServer } from "./server.ts";

const keys = generateKeyPairSync("ed25519");
const signer = new ClaimSigner(keys.privateKey);
const claimed = (project: string, admin = false): Record<string, string> => ({
  [claimHeader]: signer.header({ project, principal: "ky", admin }),
});

async function serve(context: TestContext): Promise<{ app: FastifyInstance; node: TestNode }> {
  const node = new TestNode(context);
  const authority = await createAuthority();
  const { privateKey, request } = await createRequest("edge");
  const cert = await signRequest(authority, request, { commonName: "edge", hosts: ["127.0.0.1"] });
  const app = await createEdgeServer(
    {
      sandboxes: node.sandboxes,
      layers: {
        list: async () => [],
        importDirectory: async () => {
          throw new Error("no layer is imported in this test");
        },
      },
      verifier: new ClaimVerifier(keys.publicKey),
      metrics: new EdgeMetrics(() => node.sandboxes.counts()),
      log: silentLog(),
    },
    { key: privateKey, cert, authority: authority.certificate },
  );
  context.after(async () => app.close());
  return { app, node };
}

const edgeOnly: readonly Route[] = [
  ...Object.values(routes).filter((route) => route.edge),
  ...Object.values(edgeRoutes),
];
const commandId = "c000000000001";
const bodies: Readonly<Record<string, object>> = {
  [routes.createSandbox.path]: {},
  [routes.startCommand.path]: { argv: ["true"] },
  [routes.exec.path]: { argv: ["true"] },
  [routes.signalCommand.path]: { signal: 9 },
  [routes.setLifetime.path]: { extendMs: 1 },
};
const queries: Readonly<Record<string, string>> = {
  [routes.readFile.path]: "?path=/a",
  [routes.statFile.path]: "?path=/a",
  [routes.listFiles.path]: "?path=/a",
  [routes.readOutput.path]: "?stream=stdout",
};

async function call(
  app: FastifyInstance,
  route: Route,
  id: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly body: string }> {
  const path = route.path.replace(":sandbox", id).replace(":command", commandId).replace(":key", "k");
  const payload = route.method === "POST" ? bodies[route.path] : undefined;
  const response = await app.inject({
    method: route.method,
    url: `${path}${queries[route.path] ?? ""}`,
    headers: { ...headers, "dsec-request-id": "same" },
    ...(payload === undefined ? {} : { payload }),
  });
  return { status: response.statusCode, body: response.body.replaceAll(id, "ID") };
}

test("every route of the edge wants a claim", async (context) => {
  const { app } = await serve(context);
  const walked = edgeOnly.filter((route) => route !== routes.eventStream && route !== edgeRoutes.importLayer);
  assert.ok(walked.length >= 15, "the walk saw the routes");
  for (const route of walked) {
    assert.equal((await call(app, route, "sbaaaa", {})).status, 401, `${route.method} ${route.path}`);
  }
  assert.equal((await call(app, routes.listSandboxes, "x", { [claimHeader]: "e30.AAAA" })).status, 401);
});

test("on every route another project's sandbox answers like an unknown one, byte by byte", async (context) => {
  const { app, node } = await serve(context);
  const { id } = await node.sandboxes.create({ project: "prone", admin: false }, plainRequest, undefined);
  const walked = edgeOnly.filter((route) => route.path.includes(":sandbox"));
  assert.ok(walked.length >= 13, "the walk saw the routes");
  const unknownId = `${id.slice(0, -1)}${id.endsWith("a") ? "b" : "a"}`;
  for (const route of walked) {
    const other = await call(app, route, id, claimed("prtwo"));
    assert.equal(other.status, 404, `${route.method} ${route.path}: ${other.body}`);
    assert.deepEqual(
      other,
      await call(app, route, unknownId, claimed("prtwo")),
      `${route.method} ${route.path}`,
    );
  }
  assert.equal(node.sandboxes.get({ project: "prone", admin: false }, id).state, "running");
});

test("a sandbox is created, used and deleted over the API; unknown keys are refused", async (context) => {
  const { app } = await serve(context);
  const headers = { ...claimed("prone"), "idempotency-key": "k" };
  const payload = { memoryMib: 64 };
  const created = await app.inject({ method: "POST", url: "/v1/sandboxes", headers, payload });
  assert.equal(created.statusCode, 201);
  const { id } = created.json<{ id: string }>();
  const exec = await app.inject({
    method: "POST",
    url: `/v1/sandboxes/${id}/exec`,
    headers,
    payload: { argv: ["echo", "hi"] },
  });
  assert.equal(exec.json<{ stdout: { data: string } }>().stdout.data, "hi\n");
  const file = await app.inject({
    method: "GET",
    url: `/v1/sandboxes/${id}/files?path=/etc/passwd`,
    headers,
  });
  assert.match(file.body, /^root:/);
  const absent = await app.inject({ method: "GET", url: `/v1/sandboxes/${id}/files?path=/none`, headers });
  assert.equal(absent.json<{ code: string }>().code, "file_not_found");
  const odd = await app.inject({
    method: "POST",
    url: "/v1/sandboxes",
    headers,
    payload: { ...payload, odd: 1 },
  });
  assert.equal(odd.statusCode, 400);
  const record = await app.inject({ method: "GET", url: "/v1/idempotency/k", headers });
  assert.equal(record.json<{ sandbox: { id: string } }>().sandbox.id, id);
  const deleted = await app.inject({ method: "DELETE", url: `/v1/sandboxes/${id}`, headers });
  assert.ok(deleted.statusCode < 300);
  const metrics = await app.inject({ method: "GET", url: "/metrics" });
  assert.match(metrics.body, /dsec_edge_request_seconds/);
});

test("layers are imported for administrators alone", async (context) => {
  const { app } = await serve(context);
  const payload = { kind: "workspace", name: "w", source: { directory: "/tmp" } };
  const request = { method: "POST", url: "/v1/layers:import", payload } as const;
  assert.equal((await app.inject({ ...request, headers: claimed("prone") })).statusCode, 403);
  assert.equal((await app.inject({ ...request, headers: claimed("prone", true) })).statusCode, 500);
});
