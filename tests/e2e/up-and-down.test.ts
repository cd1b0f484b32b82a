// `dsec up`, work, kill -9, `dsec up` again, `dsec down`: nothing stays behind, and `dsec doctor --leaks` says so.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DsecClient } from "@dsec/sdk";
import { type CliReport, reasonToSkip, runDsec } from "@dsec/testkit";

test("up, kill -9 of everything, up, down: doctor --leaks finds nothing", {
  skip: reasonToSkip(),
  timeout: 300_000,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "dsec-up-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o711);
  const env = {
    DSEC_RUN_DIR: join(folder, "run"),
    DSEC_DATA_DIR: join(folder, "data"),
    DSEC_LAYERS_DIR: process.env["DSEC_LAYERS_DIR"] ?? "/var/lib/dsec/layers",
  };
  const dsec = async (...args: string[]): Promise<CliReport> =>
    await runDsec(args, { env, signal: t.signal });
  const up = async (): Promise<UpAnswer> => {
    const report = await dsec("up", "--port", "0", "--cluster-port", "0", "--json");
    assert.equal(report.exitCode, 0, report.stderr);
    return JSON.parse(report.stdout) as UpAnswer;
  };
  t.after(async () => await runDsec(["down"], { env, signal: AbortSignal.timeout(60_000) }));

  const first = await up();
  await using client = new DsecClient({ url: first.url, key: readFileSync(first.keyFile, "utf8").trim() });
  const sandbox = await client.sandboxes.create({ memoryMib: 128 });
  await sandbox.files.write("/root/marker", "kept");
  assert.equal((await dsec("exec", sandbox.id, "--", "cat", "/root/marker")).stdout, "kept");
  assert.equal((await dsec("doctor", "--leaks")).exitCode, 2, "a running platform is no leak");

  const { control, edges } = JSON.parse(readFileSync(join(env.DSEC_RUN_DIR, "up.json"), "utf8")) as UpFile;
  for (const { pid } of [control, ...edges]) process.kill(pid, "SIGKILL");
  const again = await up();
  assert.deepEqual(again, first, "the same address, key and nodes");
  assert.equal((await dsec("exec", sandbox.id, "--", "cat", "/root/marker")).stdout, "kept");

  const down = await dsec("down", "--json");
  assert.deepEqual([down.exitCode, down.stdout], [0, '{"wasUp":true}\n'], down.stderr);
  const leaks = await dsec("doctor", "--leaks", "--json");
  assert.deepEqual([leaks.exitCode, leaks.stdout], [0, '{"leaks":[]}\n'], leaks.stderr);
});

interface UpAnswer {
  readonly url: string;
  readonly keyFile: string;
  readonly nodes: readonly string[];
}

interface UpFile {
  readonly control: { readonly pid: number };
  readonly edges: readonly { readonly pid: number }[];
}
