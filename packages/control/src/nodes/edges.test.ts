import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { limits } from "@dsec/contracts";
import { ClaimSigner } from "@dsec/kit";
import { NodeWatcher } from "../watcher/nodes.ts";
import { Edges } from "./edges.ts";

function open() {
  const clock = { nowMs: 0 };
  const watcher = new NodeWatcher(() => clock.nowMs);
  watcher.know([{ id: "aaaa", hostname: "h", url: "http://127.0.0.1:1", joinedAtMs: 1 }]);
  const signer = new ClaimSigner(generateKeyPairSync("ed25519").privateKey);
  return { clock, watcher, edges: new Edges(watcher, { key: "", certificate: "", authority: "" }, signer) };
}

test("Edges calls a silent node unavailable with a time to retry, and lost when it was silent for long", async () => {
  const { clock, edges } = open();
  await using _edges = edges;
  const now = edges.unreachable("aaaa", new Error("refused"));
  assert.equal(now.code, "unavailable");
  assert.ok((now.retryAfterMs ?? 0) > 0);
  clock.nowMs += limits.lostAfterPeriods * limits.heartbeatPeriodMs;
  const lost = edges.unreachable("aaaa", new Error("refused"));
  assert.equal(lost.code, "node_lost");
  assert.equal(lost.retryAfterMs, undefined);
  assert.doesNotMatch(lost.message, /refused/);
});

test("Edges keeps one client a node, makes another when the node has moved, and none for a stranger", async () => {
  const { watcher, edges } = open();
  await using _edges = edges;
  const first = edges.find("aaaa");
  assert.equal(edges.find("aaaa"), first);
  watcher.know([{ id: "aaaa", hostname: "h", url: "http://127.0.0.1:2", joinedAtMs: 1 }]);
  assert.notEqual(edges.find("aaaa"), first);
  assert.equal(edges.find("zzzz"), undefined);
});
