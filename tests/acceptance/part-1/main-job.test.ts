// 32 of 32 as planned in under 60 s after set-up, from `npm start`.
import { test } from "node:test";
import { reasonToSkip, startPlatform } from "@dsec/testkit";
import { clause, flag } from "../report.ts";
import { jobShape, runMainJob, shapeOf } from "./main-job.ts";

const secondsMax = 60;
const tasksDefault = 4;
const attemptsDefault = 8;

test("npm start runs the main job as planned", { skip: reasonToSkip(), timeout: 600_000 }, async (t) => {
  // The base layer is part of the set-up, which is measured elsewhere.
  await (await startPlatform({ signal: t.signal }))[Symbol.asyncDispose]();

  const tasks = flag("tasks", "");
  const attempts = flag("attempts", "");
  const words = [
    ...(tasks === "" ? [] : ["--tasks", tasks]),
    ...(attempts === "" ? [] : ["--attempts", attempts]),
  ];
  const { report, job } = await runMainJob(words, { signal: t.signal });
  t.diagnostic(JSON.stringify(job));

  const isDefault = words.length === 0;
  const planned = isDefault ? tasksDefault * attemptsDefault : job.sandboxes;
  await clause("the main job's sandboxes", { limit: { equals: planned }, measure: () => job.sandboxes });
  await clause("verdicts as planned", { limit: { equals: planned }, measure: () => job.asPlanned });
  await clause("exit code of npm start", { limit: { equals: 0 }, measure: () => report.exitCode ?? -1 });
  await clause("things the job left behind", { limit: { equals: 0 }, measure: () => job.leaks });
  await clause("npm start after set-up, platform's start and end included", {
    limit: { atMost: secondsMax, unit: "s" },
    measure: () => report.seconds,
  });
  await clause("the last line has the agreed shape", {
    limit: { equals: jobShape },
    measure: () => shapeOf(job),
  });
});
