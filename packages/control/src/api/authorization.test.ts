// Every route of the API refuses whom it should; a route without a test here fails the first one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type ApiKey,
  type CreatedKey,
  newSandboxId,
  type Project,
  type Route,
  routes,
} from "@dsec/contracts";
import { WebSocket } from "ws";
import { TestFleet } from "../testing/fleet.ts";

let fleet: TestFleet;
let member: string;

before(async () => {
  fleet = await TestFleet.start(1);
  member = await fleet.memberKey("members");
});
after(async () => await fleet[Symbol.asyncDispose]());

const secret = "A".repeat(43);
const strangers: readonly (readonly [string, string | null])[] = [
  ["no key", null],
  ["a key of another form", "dsec_"],
  ["an unknown key", `dsec_kyaaaaaaaaaaaaaaaaaaaa_${secret}`],
];

const pathOf = (route: Route): string =>
  route.path
    .replace(":sandbox", "sbaaaaaaaaaaaaaaaaaaaaaaaa")
    .replace(":command", "c000000000000")
    .replace(":key", "kyaaaaaaaaaaaaaaaaaaaa")
    .replace(":node", "aaaa");

/** A body for routes that read one before they answer. */
const bodies: Readonly<Record<string, object>> = {
  "POST /v1/projects": { name: "x" },
  "POST /v1/keys": { project: "nobody", name: "x" },
  "POST /v1/layers:import": { kind: "base", name: "x", source: { directory: "/nowhere" } },
};

let walked = 0;
for (const [name, route] of Object.entries<Route>(routes)) {
  if (route.auth === "node" || name === "joinNode") continue;
  walked += 1;
  if (route.auth === "none") {
    test(`${route.method} ${route.path} is open to everyone`, async () => {
      const answer = await fleet.call(route.method, pathOf(route), { key: null });
      assert.equal(answer.status, 200);
    });
    continue;
  }
  for (const [who, key] of strangers) {
    test(`${route.method} ${route.path} refuses ${who}, whatever the body`, async () => {
      for (const json of [undefined, { wrong: true }]) {
        const sent = json !== undefined && route.method !== "GET" ? { key, json } : { key };
        const answer = await fleet.call(route.method, pathOf(route), sent);
        assert.equal(answer.status, 401);
        assert.equal(answer.body["code"], "unauthenticated");
      }
    });
  }
  test(`${route.method} ${route.path} asks for ${route.auth} rights`, async () => {
    const json = bodies[`${route.method} ${route.path}`];
    const answer = await fleet.call(route.method, pathOf(route), {
      key: member,
      ...(json === undefined ? {} : { json }),
    });
    if (route.auth === "admin") assert.equal(answer.body["code"], "forbidden");
    else assert.ok(![401, 403].includes(answer.status), `${answer.status} ${answer.text}`);
  });
}

test("every route of the contracts was walked, but those of the cluster listener", () => {
  assert.equal(walked, Object.keys(routes).length - 2);
});

test("the routes of the cluster listener are not at the public one", async () => {
  for (const path of [routes.joinNode.path, pathOf(routes.heartbeat)]) {
    assert.equal((await fleet.call("POST", path, { json: {} })).status, 404);
  }
});

for (const route of [routes.heartbeat, routes.joinNode]) {
  test(`${route.path} refuses an edge that proves nothing`, async () => {
    const [edge] = fleet.edges;
    assert.ok(edge !== undefined);
    const other = route.path.replace(":node", "zzzz");
    const load = {
      sandboxes: 0,
      creating: 0,
      sandboxesMax: 1,
      cpuCores: 1,
      memoryTotalMib: 1,
      memoryAvailableMib: 1,
    };
    const report = {
      nodeId: "zzzz",
      bootId: "aaaaaaaa",
      sequence: 1,
      url: "https://127.0.0.1:1",
      load: { ...load, memoryPressure: 0, cpuPressure: 0, diskFreeMib: 1, admitting: true },
      backends: [],
      capabilities: [],
    };
    const join = {
      token: `dj_${"0".repeat(64)}_${secret}`,
      hostname: "x",
      url: "https://127.0.0.1:1",
      backends: [],
      capabilities: [],
      csr: "x",
    };
    // Node zzzz's report under the certificate of another node; a join with a token nobody made.
    assert.equal(await edge.post(other, route === routes.heartbeat ? report : join), 401);
  });
}

test("an event stream opens with a key in a header or a subprotocol, and with none other", async () => {
  const url = `${fleet.control.url.replace("http", "ws")}${routes.eventStream.path}`;
  const open = async (socket: WebSocket): Promise<string> =>
    await new Promise((resolve) => {
      socket.on("open", () => resolve(`open ${socket.protocol}`));
      socket.on("unexpected-response", (_request, response) => {
        resolve(String(response.statusCode));
        response.destroy();
      });
      socket.on("error", () => undefined);
    });
  const sockets = [
    new WebSocket(url, ["dsec.v1"], { headers: { authorization: `Bearer ${member}` } }),
    new WebSocket(url, ["dsec.v1", `dsec.key.${member}`]),
    new WebSocket(url, ["dsec.v1", "dsec.key.wrong"]),
    new WebSocket(url),
    new WebSocket(`${url}/other`, { headers: { authorization: `Bearer ${member}` } }),
  ];
  const results = await Promise.all(sockets.map(open));
  for (const socket of sockets) socket.terminate();
  assert.deepEqual(results, ["open dsec.v1", "open dsec.v1", "401", "401", "404"]);
});

test("a revoked key is refused within two seconds", async () => {
  const project = (await fleet.call("POST", "/v1/projects", { json: { name: "short" } }))
    .body as unknown as Project;
  const made = await fleet.call("POST", "/v1/keys", { json: { project: project.name, name: "k" } });
  const { key, secret: text } = made.body as unknown as CreatedKey;
  assert.equal((await fleet.call("GET", "/v1/sandboxes", { key: text })).status, 200);
  assert.equal((await fleet.call("DELETE", `/v1/keys/${key.id}`)).status, 204);
  const revokedAtMs = performance.now();
  let status = 200;
  while (status === 200 && performance.now() - revokedAtMs < 4_000) {
    status = (await fleet.call("GET", "/v1/sandboxes", { key: text })).status;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(status, 401);
  assert.ok(performance.now() - revokedAtMs < 2_500);
  const list = (await fleet.call("GET", "/v1/keys")).body["items"] as ApiKey[];
  assert.ok(list.some((one) => one.id === key.id && one.revokedAtMs !== null));
  assert.ok(!JSON.stringify(list).includes("sha256"));
});

test("a sandbox of another project answers exactly like an unknown one", async () => {
  const own = await fleet.call("POST", "/v1/sandboxes", { json: {} });
  assert.equal(own.status, 201);
  const id = String(own.body["id"]);
  const [edge] = fleet.edges;
  assert.ok(edge !== undefined);
  const unknown = newSandboxId(edge.nodeId);
  const elsewhere = `sbzzzz${unknown.slice(6)}`;
  for (const suffix of ["", "/files?path=/x"]) {
    const answers = await Promise.all(
      [id, unknown, elsewhere].map(async (one) => {
        const answer = await fleet.call("GET", `/v1/sandboxes/${one}${suffix}`, { key: member });
        const { requestId: _id, ...rest } = answer.body;
        return { status: answer.status, text: JSON.stringify(rest).replaceAll(one, "ID") };
      }),
    );
    assert.equal(answers[0]?.status, 404);
    assert.deepEqual(answers[0], answers[1]);
    assert.deepEqual(answers[0], answers[2]);
  }
  const listed = await fleet.call("GET", "/v1/sandboxes", { key: member });
  assert.deepEqual(listed.body["items"], []);
});
