// Another project's sandbox answers on every route exactly as one that never was.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Route, routes } from "@dsec/contracts";
import type { Command, Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

type Project = Awaited<ReturnType<TestPlatform["openProject"]>>;

const skip = reasonToSkip();
let platform: TestPlatform;
let owner: Project;
let stranger: Project;
let sandbox: Sandbox;
let command: Command;
before(async () => {
  if (skip !== false) return;
  platform = await startPlatform();
  owner = await platform.openProject("owner");
  stranger = await platform.openProject("stranger");
  sandbox = await owner.client.sandboxes.create({ memoryMib: 128 });
  await sandbox.files.write("/root/secret", "secret");
  command = await sandbox.start("echo secret; sleep 300");
});
after(async () => {
  await sandbox?.stop();
  owner?.client.close();
  stranger?.client.close();
  await platform?.[Symbol.asyncDispose]();
});

interface Call {
  readonly query?: string;
  readonly body?: object;
  /** Body of a route that takes bytes. */
  readonly bytes?: string;
}

/** A valid call of each route on a sandbox. */
const calls: Readonly<Record<string, Call>> = {
  getSandbox: {},
  deleteSandbox: {},
  setLifetime: { body: { extendMs: 1_000 } },
  startCommand: { body: { shell: "touch /root/stranger" } },
  listCommands: {},
  getCommand: {},
  readOutput: { query: "?stream=stdout" },
  signalCommand: { body: { signal: 9, tree: true } },
  exec: { body: { shell: "touch /root/stranger" } },
  readFile: { query: "?path=/root/secret" },
  writeFile: { query: "?path=/root/stranger", bytes: "x" },
  removeFile: { query: "?path=/root/secret" },
  statFile: { query: "?path=/root/secret" },
  listFiles: { query: "?path=/root" },
};

const sandboxRoutes = Object.entries(routes).filter(([, route]) => route.path.includes(":sandbox"));

test("every route on a sandbox is looked at", () => {
  assert.deepEqual(sandboxRoutes.map(([name]) => name).toSorted(), Object.keys(calls).toSorted());
});

for (const [name, route] of sandboxRoutes) {
  test(`${name} tells another project's sandbox from an unknown one in nothing`, { skip }, async () => {
    const theirs = await ask(name, route, sandbox.id);
    assert.deepEqual(theirs, await ask(name, route, unknownId()));
    assert.deepEqual([theirs.status, theirs.code], [404, "not_found"]);
  });
}

test("a subscription to another project's command fails as for an unknown sandbox", { skip }, async () => {
  const theirs = await subscribe(sandbox.id);
  assert.equal(theirs, await subscribe(unknownId()));
  assert.match(theirs, /not_found/);
});

test("another project's lists are empty, and nothing has happened to the sandbox", { skip }, async () => {
  assert.deepEqual(await Array.fromAsync(stranger.client.sandboxes.list()), []);
  assert.equal((await sandbox.refresh()).state, "running");
  assert.equal((await sandbox.exec("ls /root/stranger 2>/dev/null; cat /root/secret")).stdout, "secret");
  assert.ok(
    (await sandbox.commands()).some(
      ({ commandId, state }) => commandId === command.id && state === "running",
    ),
  );
});

/** An id of the same node that no sandbox has. */
function unknownId(): string {
  return `${sandbox.id.slice(0, -8)}aaaaaaaa`;
}

interface Answer {
  readonly status: number;
  readonly code: unknown;
  readonly headers: readonly string[];
  readonly text: string;
}

/** The answer to the stranger, without what differs between any two calls. */
async function ask(name: string, { method, path }: Route, id: string): Promise<Answer> {
  const { query = "", body, bytes } = calls[name] ?? {};
  const place = path.replace(":sandbox", id).replace(":command", command.id);
  const content = body === undefined ? bytes : JSON.stringify(body);
  const type = body === undefined ? "application/octet-stream" : "application/json";
  const response = await fetch(`${platform.url}${place}${query}`, {
    method,
    headers: {
      authorization: `Bearer ${stranger.key}`,
      ...(content === undefined ? {} : { "content-type": type }),
    },
    ...(content === undefined ? {} : { body: content }),
  });
  const text = (await response.text()).replaceAll(id, "ID");
  const { requestId: _, ...answer } = JSON.parse(text) as Record<string, unknown>;
  const headers = [...response.headers.keys()].toSorted();
  return { status: response.status, code: answer["code"], headers, text: JSON.stringify(answer) };
}

/** What the event stream says to the stranger's subscription. */
async function subscribe(sandboxId: string): Promise<string> {
  const url = `${platform.url.replace(/^http/, "ws")}${routes.eventStream.path}`;
  const socket = new WebSocket(url, ["dsec.v1", `dsec.key.${stranger.key}`]);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.addEventListener("open", () => {
    const message = { type: "subscribe", subscription: 1, sandboxId, commandId: command.id };
    socket.send(JSON.stringify(message));
  });
  socket.addEventListener("message", ({ data }) => resolve(String(data).replaceAll(sandboxId, "ID")));
  socket.addEventListener("close", () => reject(new Error("the event stream was closed")));
  socket.addEventListener("error", () => reject(new Error("the event stream failed")));
  try {
    return await promise;
  } finally {
    socket.close();
  }
}
