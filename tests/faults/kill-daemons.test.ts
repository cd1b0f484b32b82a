// kill -9 of each daemon at chosen moments: nothing acknowledged is lost, nothing runs twice, failed creations leave nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { DsecError, type Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";
import { sized } from "../acceptance/report.ts";
import { chanceOf } from "./chance.ts";
import { findInits, findSpawners, killProcess, until } from "./processes.ts";

const skip = reasonToSkip();
const timeout = 1_200_000;
const creations = 24;
const actions = 10;
const rounds = sized({ short: 3, full: 8, soak: 80 });

/** A daemon that can be killed, and what brings it back. */
interface Victim {
  readonly name: string;
  readonly kill: (platform: TestPlatform) => Promise<void>;
  readonly bringBack: (platform: TestPlatform) => Promise<void>;
}

const victims: readonly Victim[] = [
  {
    name: "the edge",
    kill: async (platform) => await platform.killEdge(),
    bringBack: async (platform) => await platform.restartEdges(),
  },
  {
    name: "control",
    kill: async (platform) => await platform.killControl(),
    bringBack: async (platform) => await platform.restartControl(),
  },
  {
    name: "the spawner",
    kill: async (platform) => {
      const spawners = findSpawners(platform);
      assert.equal(spawners.length, 1);
      for (const pid of spawners) await killProcess(pid);
    },
    // The edge does that by itself.
    bringBack: async (platform) => await until(() => findSpawners(platform).length > 0),
  },
];

for (const victim of victims) {
  test(`kill -9 of ${victim.name} during creations loses none that was acknowledged`, {
    skip,
    timeout,
  }, async (t) => {
    const chance = chanceOf(t);
    await using platform = await startPlatform({ signal: t.signal });
    const known: Sandbox[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const pending = Array.from({ length: creations }, async () => await createOrWhyNot(platform));
      await delay(chance.below(0, 250));
      await victim.kill(platform);
      await victim.bringBack(platform);
      const settled = await Promise.all(pending);
      const made = settled.filter((one): one is Sandbox => !(one instanceof DsecError));
      t.diagnostic(`round ${round}: ${made.length} of ${creations} made`);
      known.push(...made);
    }
    const answers = await Promise.all(known.map(async (sandbox) => await sandbox.exec(["echo", sandbox.id])));
    assert.deepEqual(
      answers.map(({ stdout }) => stdout),
      known.map(({ id }) => `${id}\n`),
    );
    await assertNothingElse(platform, known);
    await Promise.all(known.map(async (sandbox) => await sandbox.stop()));
    assert.deepEqual(await platform.leaks(), []);
  });

  test(`kill -9 of ${victim.name} during commands runs none of them twice`, { skip, timeout }, async (t) => {
    const chance = chanceOf(t);
    await using platform = await startPlatform({ signal: t.signal });
    const sandboxes = await Promise.all(
      Array.from({ length: 8 }, async () => await platform.client.sandboxes.create({ memoryMib: 128 })),
    );
    const pending = sandboxes.map(async (sandbox) => await runActions(sandbox));
    for (let round = 1; round <= rounds; round += 1) {
      await delay(chance.below(20, 400));
      await victim.kill(platform);
      await victim.bringBack(platform);
    }
    const acknowledged = await Promise.all(pending);
    const client = platform.client;
    for (const [index, { id }] of sandboxes.entries()) {
      const sandbox = await client.sandboxes.get(id);
      const done = (await sandbox.files.readText("/root/done")).trimEnd().split("\n");
      assert.equal(new Set(done).size, done.length, `an action ran twice: ${done.join(" ")}`);
      assert.deepEqual(acknowledged[index], done, "what was answered is what was done");
      await sandbox.stop();
    }
    assert.deepEqual(await platform.leaks(), []);
  });
}

/** The sandbox, or the error of a platform that says so; the SDK repeats what may be repeated. */
async function createOrWhyNot({ client }: TestPlatform): Promise<Sandbox | DsecError> {
  try {
    return await client.sandboxes.create({ memoryMib: 128 });
  } catch (error) {
    if (error instanceof DsecError) return error;
    throw error;
  }
}

/** One command after the other, each with a side effect that shows when it runs twice. Names of those that were answered. */
async function runActions(sandbox: Sandbox): Promise<readonly string[]> {
  const answered: string[] = [];
  for (let number = 1; number <= actions; number += 1) {
    const name = `action-${number}`;
    const result = await sandbox.exec(["sh", "-c", "echo $0 >> /root/done; sleep 0.1; echo $0", name], {
      actionId: name,
    });
    assert.equal(result.stdout, `${name}\n`);
    answered.push(name);
  }
  return answered;
}

/** Nothing lives but what the caller knows: neither in the lists nor on the host. */
async function assertNothingElse(platform: TestPlatform, known: readonly Sandbox[]): Promise<void> {
  const wanted = known.map(({ id }) => id).toSorted();
  const listed = await Array.fromAsync(platform.client.sandboxes.list({ state: "running" }));
  // A creation that was answered with an error may still be on its way out.
  await until(() => findInits(platform).length <= wanted.length);
  assert.deepEqual(listed.map(({ id }) => id).toSorted(), wanted);
  assert.equal(findInits(platform).length, wanted.length);
}
