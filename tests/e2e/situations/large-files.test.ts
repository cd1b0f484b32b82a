// Large files go up and down without growing the daemons.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { reasonToSkip, startPlatform, type TestPlatform } from "@dsec/testkit";
import { sized } from "../../acceptance/report.ts";

const mib = 1024 * 1024;
const growthMibMax = 150;

test("a large file goes up and down whole, with bounded memory and no time limit", {
  skip: reasonToSkip(),
  timeout: 900_000,
}, async (t) => {
  const sizeMib = sized({ short: 128, full: 2_560, soak: 2_560 });
  await using platform = await startPlatform({ signal: t.signal });
  await using sandbox = await platform.client.sandboxes.create({ memoryMib: 256 });
  const before = restartPeaks(platform);
  const up = createHash("sha256");
  const stat = await sandbox.files.write("/root/large", blocks(sizeMib, up), { signal: t.signal });
  assert.equal(stat.sizeBytes, sizeMib * mib);
  const digest = up.digest("hex");
  const inside = await sandbox.exec(["sha256sum", "/root/large"]);
  assert.equal(inside.stdout.split(" ")[0], digest);
  const down = createHash("sha256");
  for await (const chunk of sandbox.files.readStream("/root/large")) down.update(chunk);
  assert.equal(down.digest("hex"), digest);
  const grown = peaks(platform).map((peak, index) => Math.round(peak - (before[index] ?? 0)));
  t.diagnostic(`control and edge grew by ${grown.join(" and ")} MiB at most`);
  assert.ok(Math.max(...grown) < growthMibMax, `the daemons grew by ${grown.join(" and ")} MiB`);
});

/** Blocks of 1 MiB that differ from each other, hashed as they are taken. */
function blocks(count: number, hash: { update(bytes: Uint8Array): unknown }): ReadableStream<Uint8Array> {
  const block = randomBytes(mib);
  let number = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (number === count) return controller.close();
      const bytes = Uint8Array.from(block);
      new DataView(bytes.buffer).setUint32(0, number);
      number += 1;
      hash.update(bytes);
      controller.enqueue(bytes);
    },
  });
}

/** Lets the kernel count the highest memory anew; resident memory now, in MiB. */
function restartPeaks(platform: TestPlatform): readonly number[] {
  for (const pid of daemons(platform)) writeFileSync(`/proc/${pid}/clear_refs`, "5");
  return peaks(platform);
}

function peaks(platform: TestPlatform): readonly number[] {
  return daemons(platform).map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  });
}

function daemons({ state }: TestPlatform): readonly number[] {
  return [state.control, ...state.edges].map(({ pid }) => pid);
}
