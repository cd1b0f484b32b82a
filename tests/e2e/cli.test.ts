import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findLeaks, lookAtHost } from "@dsec/cli";
import { type CliReport, reasonToSkip, runDsec, startPlatform, type TestPlatform } from "@dsec/testkit";

const skip = reasonToSkip();
let platform: TestPlatform;
before(async () => {
  if (skip === false) platform = await startPlatform();
});
after(async () => await platform?.[Symbol.asyncDispose]());

async function dsec(args: readonly string[], stdin = ""): Promise<CliReport> {
  return await runDsec(args, { env: platform.env, stdin, signal: AbortSignal.timeout(60_000) });
}

async function living(): Promise<number> {
  const { stdout } = await dsec(["ps", "--json"]);
  return (JSON.parse(stdout) as unknown[]).length;
}

test("dsec run passes outputs, input and exit code on, and leaves no sandbox", { skip }, async () => {
  const hello = await dsec(["run", "--", "echo", "hello"]);
  assert.deepEqual([hello.exitCode, hello.stdout], [0, "hello\n"], hello.stderr);
  const mixed = await dsec(
    ["run", "-i", "--cwd", "/tmp", "--", "sh", "-c", "pwd; cat; echo no >&2; exit 7"],
    "in",
  );
  assert.deepEqual([mixed.exitCode, mixed.stdout, mixed.stderr], [7, "/tmp\nin", "no\n"]);
  const late = await dsec(["run", "--timeout", "1", "--", "sleep", "30"]);
  assert.equal(late.exitCode, 124);
  const json = await dsec(["run", "--json", "--memory", "128", "--", "sh", "-c", "kill -9 $$"]);
  assert.equal(json.exitCode, 137);
  assert.equal((JSON.parse(json.stdout) as { outcome: { cause: string } }).outcome.cause, "signal");
  assert.equal(await living(), 0);
});

test("dsec exec, ps and stop work on a sandbox that lives", { skip }, async () => {
  const sandbox = await platform.client.sandboxes.create({ job: "cli" });
  const exec = await dsec(["exec", sandbox.id, "--", "id", "-un"]);
  assert.deepEqual([exec.exitCode, exec.stdout], [0, "root\n"], exec.stderr);
  const ps = await dsec(["ps", "--job", "cli"]);
  assert.match(ps.stdout, new RegExp(`^SANDBOX .*\n${sandbox.id} +running `));
  const unknown = `${sandbox.id.slice(0, -4)}aaaa`;
  const stop = await dsec(["stop", sandbox.id, unknown]);
  assert.deepEqual([stop.exitCode, stop.stdout], [1, `${sandbox.id}\n`]);
  assert.equal(await living(), 0);
  const gone = await dsec(["exec", unknown, "--", "true"]);
  assert.equal(gone.exitCode, 125);
});

test("Ctrl-C in dsec run stops the sandbox", { skip }, async () => {
  let sent = false;
  const report = await runDsec(["run", "--", "sh", "-c", "echo ready; sleep 600"], {
    env: platform.env,
    signal: AbortSignal.timeout(60_000),
    onOutput: (output, kill) => {
      if (sent || !output.includes("ready")) return;
      sent = true;
      kill("SIGINT");
    },
  });
  assert.equal(report.exitCode, 130, report.stderr);
  assert.equal(await living(), 0);
  assert.deepEqual(await platform.leaks(), []);
});

test("dsec project, key and node administrate", { skip }, async () => {
  const project = (await dsec(["project", "create", "from cli"])).stdout.trim();
  const key = await dsec(["key", "create", "--project", project, "--name", "k", "--json"]);
  const { key: made, secret } = JSON.parse(key.stdout) as { key: { id: string }; secret: string };
  const run = await runDsec(["run", "--", "true"], {
    env: { ...platform.env, DSEC_KEY: secret },
    signal: AbortSignal.timeout(60_000),
  });
  assert.equal(run.exitCode, 0, run.stderr);
  assert.equal((await dsec(["key", "revoke", made.id])).exitCode, 0);
  assert.match((await dsec(["key", "list"])).stdout, new RegExp(`${made.id} .* revoked`));
  assert.match((await dsec(["node", "list"])).stdout, / healthy /);
  assert.match((await dsec(["node", "join-token"])).stdout, /^dj_/);
});

test("dsec status says what runs, up leaves it as it is, doctor shows capabilities", { skip }, async () => {
  const status = await dsec(["status", "--json"]);
  assert.equal((JSON.parse(status.stdout) as { up: boolean }).up, true, status.stderr);
  const pids = platform.state.edges.map((edge) => edge.pid);
  const up = await dsec(["up", "--json"]);
  assert.equal(up.exitCode, 0, up.stderr);
  assert.deepEqual(
    platform.state.edges.map((edge) => edge.pid),
    pids,
  );
  const doctor = await dsec(["doctor"]);
  assert.equal(doctor.exitCode, 0, doctor.stdout);
  assert.match(doctor.stdout, /CAPABILITY/);
});

for (const moment of ["starting edge", "creating 8 sandboxes", "running 8 attempts"]) {
  test(`Ctrl-C in dsec job at "${moment}" leaves nothing behind`, { skip }, async () => {
    const directory = mkdtempSync(join(tmpdir(), "dsec-interrupted-"));
    const places = { runDir: directory, dataDir: directory, layersDir: platform.places.layersDir };
    const before = lookAtHost(places);
    try {
      let sent = false;
      const report = await runDsec(["job", "--attempts", "2"], {
        env: { TMPDIR: directory, DSEC_RUN_DIR: join(directory, "none"), DSEC_LAYERS_DIR: places.layersDir },
        signal: AbortSignal.timeout(60_000),
        onOutput: (output, kill) => {
          if (sent || !output.includes(moment)) return;
          sent = true;
          kill("SIGINT");
        },
      });
      assert.equal(report.exitCode, 130, report.stderr);
      assert.deepEqual(await findLeaks(before, { places, nodeIds: [] }, AbortSignal.timeout(30_000)), []);
      assert.deepEqual(readdirSync(directory), []);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
}

test("wrong words are wrong usage", { skip }, async () => {
  for (const args of [
    ["nope"],
    ["run"],
    ["run", "--nope", "--", "true"],
    ["stop"],
    ["key"],
    ["job", "--attempts", "0"],
  ]) {
    assert.equal((await dsec(args)).exitCode, 2, args.join(" "));
  }
  assert.equal((await dsec(["--help"])).exitCode, 0);
});
