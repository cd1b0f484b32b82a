// Joining and reporting at the cluster listener, over TLS with the platform's own authority.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { connect } from "node:tls";
import { type JoinedNode, type JoinNode, type JoinToken, type NodeView, routes } from "@dsec/contracts";
import { createRequest, fingerprint } from "@dsec/kit";
import { Agent, request } from "undici";
import { TestFleet } from "../testing/fleet.ts";

interface Joined {
  readonly status: number;
  readonly body: JoinedNode & { readonly code?: string };
  readonly privateKey: string;
}

async function token(fleet: TestFleet): Promise<string> {
  return ((await fleet.call("POST", "/v1/join-tokens")).body as unknown as JoinToken).token;
}

async function join(fleet: TestFleet, more: Partial<JoinNode>, identity: object = {}): Promise<Joined> {
  const { privateKey, request: csr } = await createRequest("whatever");
  const agent = new Agent({ connect: { rejectUnauthorized: false, ...identity } });
  const answer = await request(`${fleet.control.clusterUrl}${routes.joinNode.path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      token: await token(fleet),
      hostname: "h",
      url: "https://127.0.0.1:1",
      backends: ["container"],
      capabilities: [],
      csr,
      ...more,
    }),
    dispatcher: agent,
  });
  const body = (await answer.body.json()) as Joined["body"];
  await agent.close();
  return { status: answer.statusCode, body, privateKey };
}

test("an edge gets an id, a certificate of that id and the instances; the token pins the authority", async () => {
  await using fleet = await TestFleet.start(0);
  const text = await token(fleet);
  const { status, body } = await join(fleet, { token: text });
  assert.equal(status, 200);
  assert.match(body.nodeId, /^[a-z2-7]{4}$/);
  const certificate = new X509Certificate(body.certificate);
  assert.equal(certificate.subject, `CN=edge-${body.nodeId}`);
  assert.ok(certificate.verify(new X509Certificate(body.authority).publicKey));
  assert.equal(text.split("_")[1], fingerprint(body.authority));
  assert.deepEqual(body.controls, [fleet.control.clusterUrl]);
  const nodes = (await fleet.call("GET", "/v1/nodes")).body["items"] as NodeView[];
  assert.deepEqual(
    nodes.map(({ id, health }) => ({ id, health })),
    [{ id: body.nodeId, health: "suspect" }],
  );
});

test("a node keeps its id when it shows its certificate, and nobody else can take it", async () => {
  await using fleet = await TestFleet.start(0);
  const first = await join(fleet, {});
  const { nodeId } = first.body;
  const stranger = await join(fleet, { nodeId });
  assert.equal(stranger.body.code, "forbidden");
  const other = await join(fleet, {});
  const neighbour = { key: other.privateKey, cert: other.body.certificate };
  assert.equal((await join(fleet, { nodeId }, neighbour)).body.code, "forbidden");
  const itself = { key: first.privateKey, cert: first.body.certificate };
  const again = await join(fleet, { nodeId, url: "https://127.0.0.1:2" }, itself);
  assert.equal(again.body.nodeId, nodeId);
  const nodes = (await fleet.call("GET", "/v1/nodes")).body["items"] as NodeView[];
  assert.equal(nodes.length, 2);
  assert.equal(nodes.find(({ id }) => id === nodeId)?.url, "https://127.0.0.1:2");
});

test("a certificate of another platform's authority proves nothing", async () => {
  await using fleet = await TestFleet.start(0);
  await using other = await TestFleet.start(0);
  const { nodeId } = (await join(fleet, {})).body;
  const foreign = await join(other, { nodeId });
  const identity = { key: foreign.privateKey, cert: foreign.body.certificate };
  assert.equal(foreign.body.nodeId, nodeId);
  assert.equal((await join(fleet, { nodeId }, identity)).body.code, "forbidden");
});

for (const [what, more, code] of [
  ["another token", { token: `dj_${"0".repeat(64)}_${"A".repeat(43)}` }, "unauthenticated"],
  ["a token of another form", { token: "dj_" }, "unauthenticated"],
  ["a request that is no certificate request", { csr: "none" }, "invalid_request"],
  ["an id of another form", { nodeId: "AAAA" }, "invalid_request"],
] as const) {
  test(`a join with ${what} is refused`, async () => {
    await using fleet = await TestFleet.start(0);
    assert.equal((await join(fleet, more)).body.code, code);
    assert.deepEqual((await fleet.call("GET", "/v1/nodes")).body["items"], []);
  });
}

test("the cluster listener speaks TLS 1.3 and shows the authority", async () => {
  await using fleet = await TestFleet.start(0);
  const { port, hostname } = new URL(fleet.control.clusterUrl);
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  assert.equal(socket.getProtocol(), "TLSv1.3");
  const pinned = (await token(fleet)).split("_")[1];
  const chain = socket.getPeerX509Certificate();
  assert.equal(fingerprint(chain?.issuerCertificate?.toString() ?? ""), pinned);
  socket.destroy();
});
