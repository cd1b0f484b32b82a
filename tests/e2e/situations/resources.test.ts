// Situations with processes, memory, files and secrets that users of sandbox platforms met.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
const timeout = 300_000;
const secret = `secret-${randomBytes(16).toString("hex")}`;
let platform: TestPlatform;
let sandbox: Sandbox;
before(async () => {
  if (skip !== false) return;
  // The daemons inherit it, as they would any secret of the machine they run on.
  process.env["DSEC_TEST_SECRET"] = secret;
  platform = await startPlatform();
  sandbox = await platform.client.sandboxes.create({ memoryMib: 128 });
});
after(async () => {
  delete process.env["DSEC_TEST_SECRET"];
  await sandbox?.stop();
  await platform?.[Symbol.asyncDispose]();
});

test("out of memory ends the command with that cause; the sandbox and its files stay", {
  skip,
  timeout,
}, async () => {
  await sandbox.files.write("/root/kept", "kept");
  const result = await sandbox.exec(["python3", "-c", "x = [bytearray(1 << 20) for _ in range(4096)]"]);
  assert.deepEqual(
    [result.exitCode, result.outcome.cause, result.outcome.failure.fault, result.outcome.failure.maskable],
    [null, "oom", "policy", false],
  );
  assert.equal((await sandbox.exec(["cat", "/root/kept"])).stdout, "kept");
  assert.equal((await sandbox.refresh()).state, "running");
});

test("200 orphans that forked twice leave no zombie", { skip, timeout }, async () => {
  const result = await sandbox.exec("for i in $(seq 200); do (sh -c 'sleep 0.2 &' &); done; sleep 1");
  assert.equal(result.exitCode, 0);
  const { stdout } = await sandbox.exec(
    "ps -eo stat,args | grep -c '^Z'; ps -eo args | grep -c '^sleep 0.2$'",
  );
  assert.equal(stdout, "0\n0\n");
});

test("secrets of the platform's environment are in no process, file or log of a sandbox", {
  skip,
  timeout,
}, async () => {
  const inside = await sandbox.exec("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'");
  assert.ok(!inside.stdout.includes(secret));
  assert.ok(!inside.stdout.includes(platform.key));
  const { runDir } = platform.places;
  for (const name of readdirSync(runDir).filter((entry) => entry.endsWith(".log"))) {
    const log = readFileSync(join(runDir, name), "utf8");
    assert.ok(!log.includes(secret) && !log.includes(platform.key), `${name} tells a secret`);
  }
});

test("one user's environment cannot be read by another", { skip, timeout }, async () => {
  await sandbox.start("sleep 300", { env: { TOKEN: "of-root" } });
  const own = await sandbox.exec("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c of-root");
  assert.notEqual(own.stdout, "0\n");
  const others = await sandbox.exec("cat /proc/[0-9]*/environ 2>/dev/null | grep -c of-root", {
    user: "agent",
  });
  assert.equal(others.stdout, "0\n");
});

const sizes = [0, 1, 18_432, 65_535, 65_536, 65_537, 1024 * 1024, 16 * 1024 * 1024] as const;
for (const size of sizes) {
  test(`a file of ${size} bytes arrives whole and comes back whole`, { skip, timeout }, async () => {
    const content = randomBytes(size);
    const digest = createHash("sha256").update(content).digest("hex");
    const stat = await sandbox.files.write("/tmp/upload", content);
    assert.equal(stat.sizeBytes, size);
    assert.equal((await sandbox.exec("sha256sum /tmp/upload")).stdout.split(" ")[0], digest);
    const back = await sandbox.files.read("/tmp/upload");
    assert.equal(createHash("sha256").update(back).digest("hex"), digest);
  });
}

test("links lead the file calls nowhere that the caller inside may not go", { skip, timeout }, async () => {
  await sandbox.exec(
    [
      "ln -sf /etc/shadow /tmp/shadow",
      "ln -sf /proc/1/root/etc/shadow /tmp/init-root",
      "ln -sf ../../../../../../etc/hostname /tmp/upwards",
      "ln -sf /proc/self/mem /tmp/memory",
      "chmod 700 /root; echo private >/root/private; ln -sf /root/private /tmp/private; chmod 1777 /tmp",
    ].join("; "),
  );
  const { files } = sandbox;
  const hostShadow = readFileSync("/etc/shadow", "utf8");
  assert.notEqual(await files.readText("/tmp/shadow"), hostShadow);
  assert.equal(await files.readText("/tmp/upwards"), (await sandbox.exec("cat /etc/hostname")).stdout);
  await assert.rejects(files.readText("/tmp/init-root"), { code: "file_denied" });
  for (const path of ["/tmp/private", "/root/private", "/tmp/shadow"]) {
    await assert.rejects(files.readText(path, { user: "agent" }), { code: "file_denied" });
  }
  await assert.rejects(files.write("/root/planted", "x", { user: "agent" }), { code: "file_denied" });
  await assert.rejects(files.write("/proc/self/mem", "x"));
  await assert.rejects(files.write("/proc/sys/kernel/core_pattern", "x"));
  assert.equal((await sandbox.refresh()).state, "running");
});
