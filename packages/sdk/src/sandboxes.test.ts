import assert from "node:assert/strict";
import { test } from "node:test";
import { headers } from "@dsec/contracts";
import { DsecClient } from "./client.ts";
import { answerJson, sandboxInfo, startPlatformServer } from "./testing/platform-server.ts";

const key = "dsec_test";

test("list() goes through all pages", async () => {
  await using server = await startPlatformServer({
    answer: (request, response) => {
      const isSecond = request.path.includes("cursor=next");
      const items = isSecond ? [sandboxInfo("sb3")] : [sandboxInfo("sb1"), sandboxInfo("sb2")];
      answerJson(response, 200, { items, next: isSecond ? null : "next" });
    },
  });
  await using client = new DsecClient({ url: server.url, key });
  const ids: string[] = [];
  for await (const sandbox of client.sandboxes.list({ label: ["a=b", "c=d"], limit: 2 }))
    ids.push(sandbox.id);
  assert.deepEqual(ids, ["sb1", "sb2", "sb3"]);
  assert.equal(server.requests[0]?.path, "/v1/sandboxes?label=a%3Db&label=c%3Dd&limit=2");
});

test("batch() takes a lost answer up again under the same key and yields each index once", async () => {
  const line = (index: number): string =>
    `${JSON.stringify({ index, sandbox: sandboxInfo(`sb${index}`) })}\n`;
  const error = { code: "no_capacity", message: "full", requestId: "r" };
  await using server = await startPlatformServer({
    answer: (_, response, number) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      if (number === 1) {
        response.write(line(1));
        response.write(line(0).slice(0, 9), () => setTimeout(() => response.destroy(), 20));
      } else response.end(`${line(1)}${line(0)}${JSON.stringify({ index: 2, error })}\n`);
    },
  });
  await using client = new DsecClient({ url: server.url, key });
  const seen: unknown[] = [];
  for await (const item of client.sandboxes.batch({ count: 3, template: {} })) {
    seen.push([item.index, item.sandbox?.id ?? item.error?.code]);
  }
  assert.deepEqual(seen, [
    [1, "sb1"],
    [0, "sb0"],
    [2, "no_capacity"],
  ]);
  const keys = server.requests.map((request) => request.headers[headers.idempotencyKey]);
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
});
