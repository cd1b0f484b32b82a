import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeCreate } from "./create.ts";
import { judgeExec } from "./exec.ts";
import type { Series } from "./result.ts";
import { summarise } from "./statistics.ts";
import { allFloorsMet } from "./targets.ts";

function series(contender: string, inFlight: number, p50Ms: number, rate: number): Series {
  return {
    contender,
    inFlight,
    latencyMs: summarise([p50Ms]),
    rate,
    rateSpread: 0,
    roundRates: [rate],
    roundP50Ms: [p50Ms],
    failures: 0,
    samplesMs: [p50Ms],
  };
}

const peersOfCreate = [
  series("crun run, exec, delete", 1, 16, 60),
  series("crun run", 1, 7, 130),
  series("docker run", 1, 200, 5),
];

test("judgeCreate() takes the median alone and the highest rate", () => {
  const mine = [series("dsec", 1, 8, 120), series("dsec", 8, 40, 210), series("dsec", 32, 160, 190)];
  const targets = judgeCreate([...mine, ...peersOfCreate]);
  assert.deepEqual(
    targets.map(({ metric, value }) => [metric, value]),
    [
      ["p50 alone", 8],
      ["sustained", 210],
      ["rate against docker run", 42],
      ["rate against crun", 3.5],
      ["failed", 0],
    ],
  );
  assert.ok(allFloorsMet(targets) && targets.every((target) => target.targetMet));
});

test("judgeCreate() is not met without its peers, nor with one failed creation", () => {
  const mine = [series("dsec", 1, 8, 120), series("dsec", 8, 40, 210)];
  assert.equal(allFloorsMet(judgeCreate(mine)), false);
  const failed = [{ ...series("dsec", 1, 8, 120), failures: 1 }, series("dsec", 8, 40, 210)];
  assert.equal(allFloorsMet(judgeCreate([...failed, ...peersOfCreate])), false);
});

test("judgeExec() holds latency and rate to their floors; the peer is a goal alone", () => {
  const mine = [series("dsec", 1, 4, 250), series("dsec", 64, 50, 1_200)];
  const targets = judgeExec(mine);
  assert.equal(allFloorsMet(targets), true);
  assert.equal(targets.find((target) => target.metric === "rate against crun exec")?.targetMet, false);
  assert.equal(allFloorsMet(judgeExec([series("dsec", 1, 6, 160), series("dsec", 64, 50, 1_200)])), false);
});
