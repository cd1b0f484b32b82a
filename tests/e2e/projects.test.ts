import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DsecClient, DsecError } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
before(async () => {
  if (skip === false) platform = await startPlatform();
});
after(async () => await platform?.[Symbol.asyncDispose]());

test("another project's sandbox answers exactly like an unknown one", { skip }, async () => {
  const mine = await platform.openProject("mine");
  const theirs = await platform.openProject("theirs");
  await using owned = await mine.client.sandboxes.create();
  const unknown = `${owned.id.slice(0, -6)}aaaaaa`;
  const refusal = async (id: string): Promise<string> => {
    try {
      await theirs.client.sandboxes.get(id);
      return "answered";
    } catch (error) {
      assert.ok(error instanceof DsecError);
      return `${error.code} ${error.message.replaceAll(id, "ID")}`;
    }
  };
  assert.equal(await refusal(owned.id), await refusal(unknown));
  assert.match(await refusal(owned.id), /^not_found /);

  const stolen = (await mine.client.sandboxes.get(owned.id)).info;
  const thief = new DsecClient({ url: platform.url, key: theirs.key });
  for await (const sandbox of thief.sandboxes.list()) assert.notEqual(sandbox.id, stolen.id);
  assert.equal((await owned.exec("echo alive")).stdout, "alive\n");
  for (const client of [mine.client, theirs.client, thief]) client.close();
});

test("every call on a sandbox checks the project", { skip }, async () => {
  const mine = await platform.openProject("checked");
  const theirs = await platform.openProject("checking");
  await using owned = await mine.client.sandboxes.create();
  const command = await owned.start("sleep 30");
  const paths: readonly (readonly [string, string, unknown?])[] = [
    ["GET", ""],
    ["POST", "/exec", { shell: "true" }],
    ["POST", "/commands", { shell: "true" }],
    ["GET", "/commands"],
    ["GET", `/commands/${command.id}`],
    ["GET", `/commands/${command.id}/output?stream=stdout`],
    ["POST", `/commands/${command.id}/signal`, { signal: 9 }],
    ["POST", "/lifetime", { extendMs: 1000 }],
    ["GET", "/files?path=/etc/passwd"],
    ["GET", "/files/stat?path=/etc/passwd"],
    ["GET", "/files/list?path=/etc"],
    ["DELETE", "/files?path=/etc/passwd"],
    ["PUT", "/files?path=/tmp/x"],
    ["DELETE", ""],
  ];
  for (const [method, path, body] of paths) {
    const response = await fetch(`${platform.url}/v1/sandboxes/${owned.id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${theirs.key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { code: string };
    assert.deepEqual([method, path, response.status, answer.code], [method, path, 404, "not_found"]);
  }
  assert.equal((await owned.refresh()).state, "running");
  await command.kill();
  for (const client of [mine.client, theirs.client]) client.close();
});

test("member keys do not administrate, wrong and revoked keys do nothing", { skip }, async () => {
  const member = await platform.openProject("member");
  await assert.rejects(member.client.projects.list(), { code: "forbidden" });
  await assert.rejects(member.client.nodes.createJoinToken(), { code: "forbidden" });
  await using wrong = new DsecClient({ url: platform.url, key: `${member.key.slice(0, -4)}AAAA` });
  await assert.rejects(wrong.sandboxes.create(), { code: "unauthenticated", status: 401 });
  const key = (await platform.client.keys.list()).find((one) => one.project === member.project);
  assert.ok(key !== undefined);
  await platform.client.keys.revoke(key.id);
  for (let left = 50; left > 0; left -= 1) {
    try {
      await member.client.capabilities();
    } catch (error) {
      assert.ok(error instanceof DsecError && error.code === "unauthenticated");
      member.client.close();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail("a revoked key is still accepted after 5 s");
});
