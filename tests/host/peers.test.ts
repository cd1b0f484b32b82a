// The peers of the benchmarks: each runs here, or says why not, and leaves nothing behind.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { crunCycle, crunExec, crunRun } from "@dsec/bench/peers/crun";
import { dockerRun } from "@dsec/bench/peers/docker";

const signal = AbortSignal.timeout(240_000);
const skip = process.getuid?.() !== 0 && "needs root";

for (const open of [crunRun, crunCycle, crunExec, dockerRun]) {
  test(`peer ${open.name} runs and leaves nothing behind`, { skip }, async (t) => {
    const before = traces();
    try {
      await using contender = await open(signal);
      const round = await contender.run(2, 2, signal);
      assert.deepEqual([round.durationsMs.length, round.failures], [2, 0]);
    } catch (error) {
      // A peer that cannot be had on this host is a reason to skip; what it left is looked at all the same.
      if (!(error instanceof Error) || error instanceof assert.AssertionError) throw error;
      t.skip(error.message);
    }
    assert.deepEqual(traces(), before);
  });
}

/** Directories, mounts and processes of peers that this host has now, and the owners of its devices. */
function traces(): string[] {
  const isPeer = /dsec-(?:crun|docker|bench-docker)/;
  const directories = readdirSync(tmpdir()).filter((name) => isPeer.test(name));
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => isPeer.test(line));
  const processes = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && isPeer.test(commandLine(name)),
  );
  const devices = ["null", "zero", "full", "random", "urandom", "tty"].map((name) => {
    const { uid, gid, mode } = statSync(`/dev/${name}`);
    return `${name} ${uid} ${gid} ${mode}`;
  });
  return [...directories, ...mounts, ...processes, ...devices];
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return ""; // Ended since the list was made.
  }
}
