// kill -9 of the edge with 20 sandboxes: all answer afterwards; marker file, counter process and its output are intact.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Command, Sandbox } from "@dsec/sdk";
import { reasonToSkip, startPlatform } from "@dsec/testkit";
import { chanceOf } from "../../faults/chance.ts";
import { clause, flag } from "../report.ts";

const sandboxCount = 20;

/** Counts on standard output, and keeps the last number in a file. */
const counter =
  "i=0; while :; do i=$((i + 1)); echo $i; echo $i > /tmp/count.new; mv /tmp/count.new /tmp/count; sleep 0.05; done";

test("sandboxes live through kill -9 of the edge", { skip: reasonToSkip(), timeout: 300_000 }, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  const { client } = platform;
  const witnesses = await Promise.all(Array.from({ length: sandboxCount }, startWitness));
  const before = await Promise.all(witnesses.map(readCount));

  const seed = flag("seed", "");
  await delay(chanceOf(t, seed === "" ? undefined : seed).below(0, 500));
  const killedAt = performance.now();
  await platform.killEdge();
  await platform.restartEdges();
  const answers = await Promise.all(witnesses.map(async ({ sandbox }) => (await sandbox.exec(["true"])).ok));
  const seconds = (performance.now() - killedAt) / 1000;

  const markers = await Promise.all(
    witnesses.map(async ({ sandbox, marker }) => (await sandbox.files.readText("/root/marker")) === marker),
  );
  const after = await Promise.all(
    witnesses.map(async (one, number) => await countAbove(one, before[number] ?? 0)),
  );
  const outputs = await Promise.all(witnesses.map(endAndReadOutput));
  const listed = await Array.fromAsync(client.sandboxes.list({ state: "running" }));

  const all = { equals: sandboxCount } as const;
  await clause("sandboxes that answer after kill -9 of the edge", {
    limit: all,
    measure: () => count(answers),
  });
  await clause("marker files intact", { limit: all, measure: () => count(markers) });
  await clause("counter processes that went on", { limit: all, measure: () => count(after) });
  await clause("outputs of running commands without a gap", {
    limit: all,
    measure: () => outputs.filter(isGapless).length,
  });
  await clause("sandboxes listed as running", { limit: all, measure: () => listed.length });
  await clause("kill -9 of the edge until all answered", {
    limit: { atMost: 30, unit: "s" },
    measure: () => seconds,
  });

  await Promise.all(witnesses.map(async ({ sandbox }) => await sandbox.stop()));
  await clause("left of sandboxes that outlived an edge", {
    limit: { equals: 0 },
    measure: async () => {
      const leaks = await platform.leaks();
      for (const { what, evidence } of leaks) t.diagnostic(`left: ${what} (${evidence})`);
      return leaks.length;
    },
  });

  async function startWitness(): Promise<Witness> {
    const sandbox = await client.sandboxes.create({ memoryMib: 256 });
    const marker = randomUUID();
    await sandbox.files.write("/root/marker", marker);
    const command = await sandbox.start(counter);
    return { sandbox, marker, command };
  }
});

interface Witness {
  readonly sandbox: Sandbox;
  readonly marker: string;
  readonly command: Command;
}

async function readCount({ sandbox }: Witness): Promise<number> {
  const { stdout } = await sandbox.exec("until test -s /tmp/count; do sleep 0.02; done; cat /tmp/count");
  return Number(stdout);
}

/** Whether the counter stands higher than before and still counts. A counter that began again would stand lower. */
async function countAbove(witness: Witness, before: number): Promise<boolean> {
  const now = await readCount(witness);
  const next =
    "n=0; until test $(cat /tmp/count) -gt $0; do n=$((n + 1)); test $n -lt 200 || exit 1; sleep 0.05; done";
  const goesOn = await witness.sandbox.exec(["sh", "-c", next, String(now)]);
  return now >= before && goesOn.ok;
}

/** All that the command wrote, before the edge was killed and after. */
async function endAndReadOutput({ command }: Witness): Promise<readonly number[]> {
  const output = command.stdout.text();
  await command.kill();
  const outcome = await command.outcome();
  assert.equal(outcome.signal, 9);
  return (await output).trimEnd().split("\n").map(Number);
}

function isGapless(numbers: readonly number[]): boolean {
  return numbers.length > 1 && numbers.every((number, index) => number === index + 1);
}

function count(values: readonly boolean[]): number {
  return values.filter(Boolean).length;
}
