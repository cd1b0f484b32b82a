// Creation, batches, lists and forwarding against fake edges behind real TLS and claims.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BatchLine, headers, type Sandbox } from "@dsec/contracts";
import { parseJson } from "@dsec/kit";
import { TestFleet } from "../testing/fleet.ts";

const total = (fleet: TestFleet): number => fleet.edges.reduce((sum, edge) => sum + edge.sandboxes.size, 0);

const create = async (fleet: TestFleet, key: string, json: object = {}) =>
  await fleet.call("POST", "/v1/sandboxes", { json, headers: { [headers.idempotencyKey]: key } });

test("one key makes one sandbox, again and again and all at once", async () => {
  await using fleet = await TestFleet.start(3);
  const answers = await Promise.all(Array.from({ length: 8 }, async () => await create(fleet, "same")));
  answers.push(await create(fleet, "same"));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
  assert.equal(new Set(answers.map(({ body }) => body["id"])).size, 1);
  assert.equal(total(fleet), 1);
});

test("the same key with another body is a conflict, and another project's key is its own", async () => {
  await using fleet = await TestFleet.start(2);
  assert.equal((await create(fleet, "k")).status, 201);
  const conflict = await create(fleet, "k", { cpuCores: 2 });
  assert.equal(conflict.body["code"], "conflict");
  const member = await fleet.memberKey("other");
  const other = await fleet.call("POST", "/v1/sandboxes", {
    json: { cpuCores: 2 },
    key: member,
    headers: { [headers.idempotencyKey]: "k" },
  });
  assert.equal(other.status, 201);
  assert.equal(total(fleet), 2);
});

for (const fault of ["drop-before", "drop-after"] as const) {
  test(`a connection that breaks (${fault}) makes one sandbox, on the same node`, async () => {
    await using fleet = await TestFleet.start(3);
    for (const edge of fleet.edges) edge.createFaults.push(fault);
    const answer = await create(fleet, "broken");
    assert.equal(answer.status, 201);
    assert.equal(total(fleet), 1);
  });
}

test("an edge that dies after it created leaves the outcome unknown until it is back, then there is one sandbox", async () => {
  await using fleet = await TestFleet.start(2);
  for (const edge of fleet.edges) {
    edge.createFaults.push("drop-after");
    edge.onDrop = async () => await edge.stop();
  }
  const first = await create(fleet, "dies");
  assert.equal(first.body["code"], "outcome_unknown");
  assert.equal(first.status, 503);
  assert.ok(Number(first.body["retryAfterMs"]) > 0);
  const again = await create(fleet, "dies");
  assert.equal(again.body["code"], "outcome_unknown");
  assert.equal(total(fleet), 1);
  for (const edge of fleet.edges) {
    edge.createFaults.length = 0;
    if (!edge.isServing) await edge.start();
  }
  const last = await create(fleet, "dies");
  assert.equal(last.status, 201);
  assert.equal(total(fleet), 1);
});

test("placement goes on after a rejection, past unreachable nodes, and says when no node has room", async () => {
  await using fleet = await TestFleet.start(4, { placementCandidates: 2 });
  const [stopped, ...others] = fleet.edges;
  await stopped?.stop();
  for (const edge of others.slice(1))
    for (let count = 0; count < 50; count += 1) edge.createFaults.push("reject");
  for (let count = 0; count < 5; count += 1) {
    const answer = await fleet.call("POST", "/v1/sandboxes", { json: {} });
    assert.equal(answer.status, 201);
    assert.equal(answer.body["node"], others[0]?.nodeId);
  }
  for (let count = 0; count < 50; count += 1) others[0]?.createFaults.push("reject");
  const full = await fleet.call("POST", "/v1/sandboxes", { json: {} });
  assert.ok(full.body["code"] === "no_capacity" || full.body["code"] === "unavailable", full.text);
  assert.ok(Number(full.body["retryAfterMs"]) > 0);
});

test("a backend that no node has is an unsupported capability, and unknown keys of a body are refused", async () => {
  await using fleet = await TestFleet.start(1);
  const answer = await fleet.call("POST", "/v1/sandboxes", { json: { backend: "fullvm" } });
  assert.equal(answer.status, 422);
  assert.equal(answer.body["code"], "unsupported_capability");
  const wrong = await fleet.call("POST", "/v1/sandboxes", { json: { cpus: 2 } });
  assert.equal(wrong.body["code"], "invalid_request");
  const key = await create(fleet, "with space");
  assert.equal(key.body["code"], "invalid_request");
});

test("a batch streams a line for each sandbox as it completes, on every node, and failures in line", async () => {
  await using fleet = await TestFleet.start(2);
  for (const edge of fleet.edges) edge.createMs = 5;
  const answer = await fleet.call("POST", "/v1/sandboxes:batch", { json: { count: 100, template: {} } });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "application/x-ndjson");
  const lines = answer.text
    .trim()
    .split("\n")
    .map((text) => parseJson(BatchLine, text, "line"));
  assert.deepEqual(
    lines.map(({ index }) => index).toSorted((one, two) => one - two),
    Array.from({ length: 100 }, (_, index) => index),
  );
  assert.ok(lines.every((line) => "sandbox" in line));
  assert.ok(fleet.edges.every((edge) => edge.sandboxes.size > 20));
  const wrong = await fleet.call("POST", "/v1/sandboxes:batch", {
    json: { count: 2, template: { backend: "fullvm" } },
  });
  const errors = wrong.text
    .trim()
    .split("\n")
    .map((text) => parseJson(BatchLine, text, "line"));
  assert.ok(errors.every((line) => "error" in line && line.error.code === "unsupported_capability"));
});

test("a batch whose caller goes away stops, and what it was not told of is removed", async () => {
  await using fleet = await TestFleet.start(1);
  const [edge] = fleet.edges;
  assert.ok(edge !== undefined);
  edge.createMs = 20;
  const gone = new AbortController();
  const answer = await fetch(`${fleet.control.url}/v1/sandboxes:batch`, {
    method: "POST",
    headers: { authorization: `Bearer ${fleet.adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ count: 10_000, template: {} }),
    signal: gone.signal,
  });
  const reader = answer.body?.getReader();
  const text = Buffer.from((await reader?.read())?.value ?? []).toString();
  const told = text.trim().split("\n").length;
  gone.abort();
  await new Promise((resolve) => setTimeout(resolve, 400));
  const made = edge.sandboxes.size;
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(edge.sandboxes.size, made);
  // Lines that were on the wire when the caller left count as told.
  assert.ok(made >= told && made < 100, `${made} sandboxes, ${told} told`);
});

test("a list merges all nodes in order, page by page", async () => {
  await using fleet = await TestFleet.start(3);
  await fleet.call("POST", "/v1/sandboxes:batch", { json: { count: 50, template: {} } });
  const ids: string[] = [];
  let cursor: unknown = null;
  let pages = 0;
  do {
    const page = await fleet.call(
      "GET",
      `/v1/sandboxes?limit=7${cursor === null ? "" : `&cursor=${cursor as string}`}`,
    );
    assert.equal(page.status, 200);
    ids.push(...(page.body["items"] as Sandbox[]).map(({ id }) => id));
    cursor = page.body["next"];
    pages += 1;
  } while (cursor !== null);
  assert.equal(pages, 8);
  assert.deepEqual(ids, fleet.edges.flatMap((edge) => [...edge.sandboxes.keys()]).toSorted());
});

test("a call on a sandbox goes to its edge as it is: body, query, answer, never the key", async () => {
  await using fleet = await TestFleet.start(2);
  const { body } = await fleet.call("POST", "/v1/sandboxes", { json: {} });
  const path = `/v1/sandboxes/${String(body["id"])}`;
  const edge = fleet.edge(body["node"]);
  const echo = await fleet.call("POST", `${path}/exec`, {
    json: { argv: ["true"], odd: 1 },
    headers: { cookie: "a=b" },
  });
  assert.deepEqual(echo.body, { echo: { argv: ["true"], odd: 1 } });
  assert.equal(edge.lastHeaders["authorization"], undefined);
  assert.equal(edge.lastHeaders["cookie"], undefined);
  assert.equal(edge.lastHeaders[headers.requestId], echo.headers.get(headers.requestId));
  const written = await fetch(`${fleet.control.url}${path}/files?path=/big`, {
    method: "PUT",
    headers: { authorization: `Bearer ${fleet.adminKey}`, "content-type": "application/octet-stream" },
    body: Buffer.alloc(9_000_000),
  });
  assert.equal(written.status, 200);
  assert.equal(edge.writtenBytes, 9_000_000);
  const read = await fetch(`${fleet.control.url}${path}/files?path=/big`, {
    headers: { authorization: `Bearer ${fleet.adminKey}` },
  });
  assert.equal(read.headers.get(headers.outputOffset), "7");
  assert.equal((await read.arrayBuffer()).byteLength, 3_000_000);
  const stopped = await fleet.call("DELETE", path);
  assert.equal(stopped.body["state"], "stopped");
  assert.equal((await fleet.call("GET", path)).status, 404);
});

test("a node that does not answer is unavailable, and lost once it was silent for long", async () => {
  await using fleet = await TestFleet.start(1);
  const { body } = await fleet.call("POST", "/v1/sandboxes", { json: {} });
  await fleet.edges[0]?.stop();
  const path = `/v1/sandboxes/${String(body["id"])}`;
  const now = await fleet.call("GET", path);
  assert.equal(now.body["code"], "unavailable");
  assert.ok(Number(now.body["retryAfterMs"]) > 0);
});

test("health, readiness, metrics and the description answer", async () => {
  await using fleet = await TestFleet.start(0);
  const key = null;
  assert.equal((await fleet.call("GET", "/healthz", { key })).status, 200);
  assert.equal((await fleet.call("GET", "/readyz", { key })).status, 503);
  await fleet.addEdge();
  assert.equal((await fleet.call("GET", "/readyz", { key })).status, 200);
  await fleet.call("POST", "/v1/sandboxes", { json: {} });
  const { text } = await fleet.call("GET", "/metrics", { key });
  assert.match(text, /dsec_control_creations_total\{outcome="created"\} 1/);
  assert.match(text, /dsec_control_nodes\{health="healthy"\} 1/);
  assert.match(text, /dsec_control_request_seconds_count\{route="\/v1\/sandboxes",status="2xx"\} 1/);
});
