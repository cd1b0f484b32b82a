// `npm start -- …`: from a fresh clone to the result of the main job, with no step in between.
import { checkHost, describeReport } from "./host-check.mjs";
import { becomeDsec } from "./pinned-node.mjs";
import { SetupError, say } from "./progress.mjs";
import { ensureChronus, ensureNodeModules, ensurePackages } from "./steps.mjs";

const help = `npm start -- [options]

Installs what is missing, starts the platform, runs the main job, prints its result and cleans up.

  --tasks DIR     the folder of tasks to run (default: the repository's own)
  --attempts N    attempts of each task, all at once
  --json          print one line of JSON as the last line of stdout
  --keep          leave the platform running afterwards
  --help          print this and install nothing

Set-up, in this order, each step only when it is needed: host check, Debian packages, npm packages and the pinned
Node.js, chronus from source. Ends with 2 when this host will not do, 1 when the job differs from its plan.
Further options are those of \`dsec job\`.
`;

/** @returns {boolean} whether the host will do; says what is wrong */
function isHostUsable() {
  const reports = checkHost().filter(({ kind }) => kind !== "ok");
  for (const report of reports) say(describeReport(report));
  const isUsable = reports.every(({ kind }) => kind !== "failed");
  if (!isUsable) say("This host will not do; nothing was installed.");
  return isUsable;
}

async function main() {
  const args = process.argv.slice(2);
  if (args.includes("--help") || args.includes("-h")) return void process.stdout.write(help);
  if (!isHostUsable()) return void (process.exitCode = 2);
  await ensurePackages();
  await ensureNodeModules();
  await ensureChronus();
  becomeDsec(["job", ...args]);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
