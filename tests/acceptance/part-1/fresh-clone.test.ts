// Both commands of README.md work from a fresh clone.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { reasonToSkip } from "@dsec/testkit";
import { clause, flag, sized } from "../report.ts";
import { lastWords, repository, runProgram } from "../run-program.ts";
import { runMainJob } from "./main-job.ts";

/** Set in the clone's own `npm test`, so that the clone is not cloned again. */
const insideClone = "DSEC_INSIDE_CLONE";

/** What of the clone's tests runs when not all do: unit tests of the shared packages and one walk through everything. */
const smoke = ["packages/contracts", "packages/sdk", "packages/cli", "tools", "tests/e2e/create.test.ts"];

test("npm start and npm test work from a fresh clone", { skip: whyNot(), timeout: 3_600_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "dsec-clone-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  // Control runs as another user, who must reach the programs below.
  chmodSync(folder, 0o755);
  const clone = join(folder, "dsec");
  const gitConfig = join(folder, "gitconfig");
  // The repository may belong to another user than the one who tests it.
  writeFileSync(gitConfig, "[safe]\n\tdirectory = *\n");
  const cloned = await runProgram(["git", "clone", "--quiet", "--no-hardlinks", repository, clone], {
    cwd: folder,
    env: { GIT_CONFIG_GLOBAL: gitConfig },
    signal: t.signal,
  });
  await clause("git clone", { limit: { equals: 0 }, measure: () => cloned.exitCode ?? -1 });

  const { report, job } = await runMainJob([], { cwd: clone, signal: t.signal });
  t.diagnostic(`npm start in the clone took ${Math.round(report.seconds)} s`);
  await clause("npm start in a fresh clone: exit code", {
    limit: { equals: 0 },
    measure: () => report.exitCode ?? -1,
  });
  await clause("npm start in a fresh clone: as planned", {
    limit: { equals: 32 },
    measure: () => job.asPlanned,
  });

  const paths =
    flag("clone-tests", sized({ short: "smoke", full: "smoke", soak: "all" })) === "all" ? [] : smoke;
  const tested = await runProgram(["npm", "test", ...(paths.length === 0 ? [] : ["--", ...paths])], {
    cwd: clone,
    env: { [insideClone]: "1", DSEC_TEST_LENGTH: "short" },
    signal: t.signal,
  });
  if (tested.exitCode !== 0) t.diagnostic(lastWords(tested));
  const what = paths.length === 0 ? "all" : paths.join(" ");
  await clause(`npm test in a fresh clone (${what}): exit code`, {
    limit: { equals: 0 },
    measure: () => tested.exitCode ?? -1,
  });
});

function whyNot(): string | false {
  if (process.env[insideClone] !== undefined) return "runs inside the clone that this very test made";
  if (!existsSync(join(repository, ".git"))) return "this is no git repository";
  if (flag("clone", "true") === "false") return "--clone false";
  return reasonToSkip();
}
