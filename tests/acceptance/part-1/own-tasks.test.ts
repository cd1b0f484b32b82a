// A folder of tasks of one's own: one more task in one more language runs; a verdict that is not the expected one fails the job.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { reasonToSkip } from "@dsec/testkit";
import { clause, sized } from "../report.ts";
import { repository } from "../run-program.ts";
import { runMainJob } from "./main-job.ts";

const examples = join(repository, "examples/tasks");
const extra = "expression-evaluator";
const skip = reasonToSkip();
const timeout = 600_000;

test("a task that is put beside the others runs like them", { skip, timeout }, async (t) => {
  const folder = temporaryFolder();
  t.after(folder.remove);
  cpSync(examples, folder.path, { recursive: true });
  const before = languagesOf(folder.path);
  cpSync(join(repository, "examples/extra-task", extra), join(folder.path, extra), { recursive: true });
  const added = [...languagesOf(folder.path)].filter((language) => !before.has(language));

  const attempts = sized({ short: 2, full: 4, soak: 8 });
  const words = ["--tasks", folder.path, "--attempts", String(attempts)];
  const { report, job } = await runMainJob(words, { signal: t.signal });

  await clause("languages before the added task", { limit: { atLeast: 3 }, measure: () => before.size });
  await clause("languages that the added task brings", { limit: { equals: 1 }, measure: () => added.length });
  await clause("the added task ran", { limit: { equals: true }, measure: () => extra in job.passRateByTask });
  await clause("all verdicts with the added task are as planned", {
    limit: { equals: job.sandboxes },
    measure: () => job.asPlanned,
  });
  await clause("exit code with the added task", {
    limit: { equals: 0 },
    measure: () => report.exitCode ?? -1,
  });
});

test("a wrong expectation makes the job exit 1", { skip, timeout }, async (t) => {
  const folder = temporaryFolder();
  t.after(folder.remove);
  cpSync(join(repository, "examples/extra-task", extra), join(folder.path, extra), { recursive: true });
  const path = join(folder.path, extra, "task.toml");
  const text = readFileSync(path, "utf8");
  const wrong = text.replace(/^("[^"]+" = )"pass"$/m, '$1"fail"');
  assert.notEqual(wrong, text, "no attempt of the extra task is expected to pass");
  writeFileSync(path, wrong);

  const { report, job } = await runMainJob(["--tasks", folder.path], { signal: t.signal });
  await clause("verdicts against a wrong expectation", {
    limit: { equals: 1 },
    measure: () => job.sandboxes - job.asPlanned,
  });
  await clause("exit code with a wrong expectation", {
    limit: { equals: 1 },
    measure: () => report.exitCode ?? -1,
  });
});

function languagesOf(folder: string): Set<string> {
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name, "task.toml"), "utf8"));
  return new Set(texts.map((text) => /^language = "([^"]+)"$/m.exec(text)?.[1] ?? ""));
}

function temporaryFolder(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "dsec-accept-tasks-"));
  return { path, remove: () => rmSync(path, { recursive: true }) };
}
