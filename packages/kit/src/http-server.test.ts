import assert from "node:assert/strict";
import { test } from "node:test";
import { ListFiles, PlatformError, routes, SignalCommand } from "@dsec/contracts";
import { addRoute, createHttpServer } from "./http-server.ts";
import { silentLog } from "./log.ts";
import { parseQuery } from "./query.ts";

function server() {
  const app = createHttpServer({ log: silentLog() });
  addRoute(app, routes.signalCommand, { body: SignalCommand }, (request, reply) => reply.send(request.body));
  addRoute(app, routes.batchCreate, {}, (_request, reply) => reply.send("batch"));
  addRoute(app, routes.health, {}, () => {
    throw new PlatformError("no_capacity", "No room", {
      retryAfterMs: 1_500,
      cause: new Error("secret path"),
    });
  });
  addRoute(app, routes.ready, {}, () => {
    throw new Error("secret path");
  });
  return app;
}

const url = "/v1/sandboxes/sba/commands/c0/signal";

test("a body is validated, defaults are filled in, nothing is coerced, unknown keys are refused", async () => {
  const app = server();
  const good = await app.inject({ method: "POST", url, payload: { signal: 9 } });
  assert.deepEqual(good.json(), { signal: 9, tree: false });
  for (const payload of [{}, { signal: "9" }, { signal: 99 }, { signal: 9, extra: 1 }]) {
    const answer = await app.inject({ method: "POST", url, payload });
    assert.equal(answer.statusCode, 400);
    assert.equal(answer.json().code, "invalid_request");
  }
});

test("an error of the platform has its status, retry time and blame, and never its cause", async () => {
  const answer = await server().inject({ method: "GET", url: "/healthz" });
  assert.equal(answer.statusCode, 503);
  assert.equal(answer.headers["retry-after"], "2");
  assert.equal(answer.json().retryAfterMs, 1_500);
  assert.equal(answer.json().failure.maskable, true);
  assert.doesNotMatch(answer.body, /secret/);
});

test("an unknown error is internal and says nothing of its text", async () => {
  const answer = await server().inject({
    method: "GET",
    url: "/readyz",
    headers: { "dsec-request-id": "mine" },
  });
  assert.equal(answer.statusCode, 500);
  assert.equal(answer.json().requestId, "mine");
  assert.doesNotMatch(answer.body, /secret/);
});

test("a colon inside a path segment is literal", async () => {
  const app = server();
  assert.equal((await app.inject({ method: "POST", url: "/v1/sandboxes:batch" })).body, "batch");
  assert.equal((await app.inject({ method: "POST", url: "/v1/sandboxesxbatch" })).statusCode, 404);
});

test("parseQuery() turns text into what the schema wants and refuses the rest", () => {
  assert.deepEqual(parseQuery(ListFiles, { path: "/a", entriesMax: "5" }), { path: "/a", entriesMax: 5 });
  for (const wrong of [
    {},
    { path: "a" },
    { path: "/a", entriesMax: "x" },
    { path: ["/a", "/b"] },
    { path: "/a", other: "1" },
  ]) {
    assert.throws(() => parseQuery(ListFiles, wrong), { code: "invalid_request" });
  }
});
