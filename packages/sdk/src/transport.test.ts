import assert from "node:assert/strict";
import { test } from "node:test";
import { headers } from "@dsec/contracts";
import { DsecClient } from "./client.ts";
import { DsecError } from "./errors.ts";
import { answerJson, sandboxInfo, startPlatformServer } from "./testing/platform-server.ts";

const key = "dsec_test";
const busy = { code: "no_capacity", message: "full", requestId: "r1", retryAfterMs: 1 };

test("create() repeats under the same key until there is room, and says which attempt is the first", async () => {
  await using server = await startPlatformServer({
    answer: (_, response, number) =>
      number < 3 ? answerJson(response, 503, busy) : answerJson(response, 201, sandboxInfo()),
  });
  await using client = new DsecClient({ url: server.url, key });
  const sandbox = await client.sandboxes.create({ cpuCores: 2 });
  assert.equal(sandbox.info.state, "running");
  const keys = server.requests.map((request) => request.headers[headers.idempotencyKey]);
  assert.equal(new Set(keys).size, 1);
  assert.deepEqual(
    server.requests.map((request) => request.headers[headers.attempt]),
    ["1", undefined, undefined],
  );
  assert.deepEqual(
    server.requests.map((request) => [request.body, request.headers.authorization]),
    Array.from({ length: 3 }, () => ['{"cpuCores":2}', "Bearer dsec_test"]),
  );
});

test("create() with the caller's key never calls it new", async () => {
  await using server = await startPlatformServer({
    answer: (_, response) => answerJson(response, 201, sandboxInfo()),
  });
  await using client = new DsecClient({ url: server.url, key });
  await client.sandboxes.create({}, { idempotencyKey: "mine" });
  assert.equal(server.requests[0]?.headers[headers.idempotencyKey], "mine");
  assert.equal(server.requests[0]?.headers[headers.attempt], undefined);
});

test("exec() repeats a lost call with the same actionId", async () => {
  const ended = {
    command: { commandId: "c000000000000" },
    outcome: { exitCode: 3 },
    stdout: { encoding: "utf8", data: "hello", truncated: false },
    stderr: { encoding: "base64", data: "/w==", truncated: false },
  };
  await using server = await startPlatformServer({
    answer: (request, response, number) => {
      if (request.method === "GET") answerJson(response, 200, sandboxInfo());
      else if (number === 2) response.destroy();
      else answerJson(response, 200, ended);
    },
  });
  await using client = new DsecClient({ url: server.url, key });
  const sandbox = await client.sandboxes.get("sbx");
  const result = await sandbox.exec("exit 3");
  assert.deepEqual([result.exitCode, result.ok, result.stdout, result.stderr], [3, false, "hello", "\ufffd"]);
  assert.deepEqual([...result.stderrBytes], [0xff]);
  const ids = server.requests.slice(1).map((one) => (JSON.parse(one.body) as { actionId: string }).actionId);
  assert.equal(ids.length, 2);
  assert.equal(ids[0], ids[1]);
});

test("a signal that may have arrived is not sent again", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) => {
      if (request.method === "POST" && request.path.endsWith("/signal")) response.destroy();
      else if (request.method === "GET") answerJson(response, 200, sandboxInfo());
      else answerJson(response, 200, { commandId: "c000000000000", outcome: null });
    },
  });
  await using client = new DsecClient({ url: server.url, key });
  const command = await (await client.sandboxes.get("sbx")).start(["sleep", "1"]);
  await assert.rejects(command.signal(10), { code: "outcome_unknown" });
  assert.equal(server.requests.filter((one) => one.path.endsWith("/signal")).length, 1);
});

test("the next address is used when one does not answer", async () => {
  await using dead = await startPlatformServer({});
  const deadUrl = dead.url;
  await dead[Symbol.asyncDispose]();
  await using server = await startPlatformServer({
    answer: (_, response) => answerJson(response, 200, { items: [] }),
  });
  await using client = new DsecClient({ url: [deadUrl, server.url], key });
  assert.deepEqual(await client.capabilities(), []);
  assert.deepEqual(await client.layers.list(), []);
  assert.equal(server.requests.length, 2);
});

test("an error of the platform keeps what it says and is not repeated", async () => {
  const failure = { fault: "caller", cause: "cancelled", maskable: true, agentCouldCause: false };
  const body = { code: "conflict", message: "taken", details: { key: 1 }, requestId: "r9", failure };
  await using server = await startPlatformServer({
    answer: (_, response) => answerJson(response, 409, body),
  });
  await using client = new DsecClient({ url: server.url, key });
  await assert.rejects(client.sandboxes.create(), (error) => {
    assert.ok(error instanceof DsecError);
    assert.deepEqual(
      [error.code, error.status, error.message, error.requestId],
      ["conflict", 409, "taken", "r9"],
    );
    assert.deepEqual([error.details, error.failure], [{ key: 1 }, failure]);
    return true;
  });
  assert.equal(server.requests.length, 1);
});

test("an answer of a proxy becomes an error with a failure", async () => {
  await using server = await startPlatformServer({
    answer: (_, response) => response.writeHead(502).end("<html>bad gateway</html>"),
  });
  await using client = new DsecClient({ url: server.url, key, timeoutMs: 200 });
  await assert.rejects(client.capabilities(), (error) => {
    assert.ok(error instanceof DsecError);
    assert.deepEqual([error.code, error.status, error.failure.fault], ["unavailable", 502, "infra"]);
    return true;
  });
  assert.ok(server.requests.length > 1);
});

test("a call ends at its bound and says what is unknown", async () => {
  await using server = await startPlatformServer({});
  await using client = new DsecClient({ url: server.url, key, timeoutMs: 50 });
  await assert.rejects(client.capabilities(), { code: "deadline" });
  await assert.rejects(client.sandboxes.create(), { code: "outcome_unknown" });
});

test("a call ends when its signal aborts", async () => {
  await using server = await startPlatformServer({});
  await using client = new DsecClient({ url: server.url, key });
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 20);
  await assert.rejects(client.capabilities({ signal: controller.signal }), (error) => {
    assert.ok(error instanceof DsecError && error.cause instanceof Error);
    assert.deepEqual(
      [error.code, error.cause.message, error.failure.fault],
      ["cancelled", "enough", "caller"],
    );
    return true;
  });
});

test("stop() of a sandbox that is gone is no error", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) =>
      request.method === "DELETE"
        ? answerJson(response, 404, { code: "not_found", message: "gone", requestId: "r" })
        : answerJson(response, 200, sandboxInfo()),
  });
  await using client = new DsecClient({ url: server.url, key });
  await (await client.sandboxes.get("sbx")).stop();
});

test("files travel as bytes with their options in the query", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) => {
      if (request.method === "PUT") answerJson(response, 200, { path: "/a b" });
      else if (request.path.includes("/files?")) response.end("content");
      else answerJson(response, 200, sandboxInfo());
    },
  });
  await using client = new DsecClient({ url: server.url, key });
  const { files } = await client.sandboxes.get("sbx");
  assert.equal((await files.write("/a b", "text", { mode: "755" })).path, "/a b");
  assert.equal(await files.readText("/a b", { offset: 2 }), "content");
  const parts: Uint8Array[] = [];
  for await (const part of files.readStream("/a b")) parts.push(part);
  assert.equal(Buffer.concat(parts).toString(), "content");
  assert.deepEqual(
    server.requests.slice(1, 3).map((one) => [one.path, one.body]),
    [
      ["/v1/sandboxes/sbabcdefghijklmnopqrstuvwx/files?path=%2Fa+b&mode=755", "text"],
      ["/v1/sandboxes/sbabcdefghijklmnopqrstuvwx/files?path=%2Fa+b&offset=2", ""],
    ],
  );
});

test("the same calls work over the standard fetch", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) => {
      if (request.path.includes("/files?")) response.end("content");
      else if (request.method === "DELETE") response.writeHead(204).end();
      else if (request.path.endsWith("/v1/layers")) response.writeHead(502).end("bad gateway");
      else answerJson(response, 201, sandboxInfo());
    },
  });
  await using client = new DsecClient({ url: server.url, key, fetch, timeoutMs: 500 });
  const sandbox = await client.sandboxes.create({});
  const parts: Uint8Array[] = [];
  for await (const part of sandbox.files.readStream("/x")) parts.push(part);
  assert.equal(Buffer.concat(parts).toString(), "content");
  assert.equal(await sandbox.files.readText("/x"), "content");
  await sandbox.stop();
  await assert.rejects(client.layers.list(), { code: "unavailable", status: 502 });
});

test("streams are sent as they are, once", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) =>
      request.method === "PUT" ? response.destroy() : answerJson(response, 200, sandboxInfo()),
  });
  for (const own of [{}, { fetch }]) {
    await using client = new DsecClient({ url: server.url, key, ...own });
    const { files } = await client.sandboxes.get("sbx");
    const stream = new Blob(["one two"]).stream();
    await assert.rejects(files.write("/x", stream), { code: "outcome_unknown" });
  }
  assert.deepEqual(
    server.requests.filter((one) => one.method === "PUT").map((one) => one.body),
    ["one two", "one two"],
  );
});

test("a file that breaks off half-way is an error of the platform, and a signal ends the reading", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) => {
      if (!request.path.includes("/files?")) return answerJson(response, 200, sandboxInfo());
      response.writeHead(200, { "content-length": "10" });
      response.write("half", () => {
        if (request.path.includes("broken")) setTimeout(() => response.destroy(), 20);
      });
    },
  });
  for (const own of [{}, { fetch }]) {
    await using client = new DsecClient({ url: server.url, key, ...own });
    const { files } = await client.sandboxes.get("sbx");
    const readAll = async (path: string, signal?: AbortSignal): Promise<void> => {
      for await (const _ of files.readStream(path, signal === undefined ? {} : { signal }));
    };
    await assert.rejects(readAll("/broken"), { code: "unavailable" });
    await assert.rejects(readAll("/slow", AbortSignal.timeout(50)), { code: "cancelled" });
  }
});
