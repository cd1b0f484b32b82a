// `npm test [-- PATH…]`: sets up what is missing, then runs every test that this host can run and lists the others
// with the reason. With paths, runs only test files under them.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkHost, describeReport } from "./host-check.mjs";
import { pinnedNode } from "./pinned-node.mjs";
import { root, SetupError, say } from "./progress.mjs";
import { ensureChronus, ensureNodeModules, ensurePackages } from "./steps.mjs";
import { testGroups } from "./test-groups.mjs";

const tapFile = join(root, ".dsec/tests.tap");
const testTimeoutMs = 600_000;

/**
 * Runs a program in the foreground.
 * @param {string} title
 * @param {readonly string[]} argv
 * @returns {boolean} whether it ended with 0
 */
function run(title, [program = "", ...args]) {
  console.log(`\n== ${title}`);
  const path = `${join(root, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`;
  const env = { ...process.env, PATH: path, DSEC_TEST_LENGTH: process.env["DSEC_TEST_LENGTH"] ?? "short" };
  const { status, error } = spawnSync(program, args, { cwd: root, env, stdio: "inherit" });
  if (error) say(`${title}: ${error.message}`);
  return status === 0;
}

/** @param {import("./test-groups.mjs").TestGroup} group @returns {string[]} */
function filesOf({ folder, pattern }) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((path) => join(folder, path))
    .filter((path) => pattern.test(path) && !path.includes("node_modules/"))
    .sort();
}

/**
 * @param {string | undefined} unfit why this host cannot run sandboxes
 * @param {readonly string[]} paths
 */
function selectFiles(unfit, paths) {
  /** @type {string[]} */
  const files = [];
  /** @type {string[]} */
  const notRun = [];
  for (const group of testGroups) {
    const found = filesOf(group).filter(
      (file) => paths.length === 0 || paths.some((path) => file.startsWith(path)),
    );
    if (found.length === 0 && paths.length === 0) notRun.push(`${group.name}: no test in ${group.folder}`);
    else if (group.needsHost && unfit !== undefined)
      notRun.push(`${group.name} (${found.length} files): ${unfit}`);
    else files.push(...found);
  }
  return { files, notRun };
}

/** The counts that node's test runner closed with, as it prints them for tools. */
function closingLines() {
  return readFileSync(tapFile, "utf8")
    .split("\n")
    .filter((line) => /^# (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(line))
    .join("\n");
}

/** Why this host cannot run sandboxes; says it. */
function whyUnfit() {
  const bad = checkHost().filter(({ kind }) => kind === "failed");
  for (const report of bad) say(describeReport(report));
  return bad.length === 0 ? undefined : `this host will not do (${bad.map(({ name }) => name).join(", ")})`;
}

/**
 * The steps that read sources, and chronus's own tests.
 * @param {boolean} canBuild whether there is a Rust toolchain
 * @returns {string[]} names of what failed
 */
function runChecks(canBuild) {
  const check = [pinnedNode, "tools/check.ts", "--static", ...(canBuild ? [] : ["--without-rust"])];
  const failed = run("static checks", check) ? [] : ["static checks"];
  const cargoTest = ["cargo", "test", "--locked", "--manifest-path", "native/chronus/Cargo.toml"];
  return !canBuild || run("cargo test", cargoTest) ? failed : [...failed, "cargo test"];
}

/**
 * One file at a time: tests that count what the host holds must not see each other's sandboxes.
 * @param {readonly string[]} files
 */
function runTests(files) {
  if (files.length === 0) throw new SetupError("No test file was found");
  mkdirSync(dirname(tapFile), { recursive: true });
  rmSync(tapFile, { force: true });
  const limits = ["--test-concurrency=1", `--test-timeout=${testTimeoutMs}`];
  const people = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
  const programs = ["--test-reporter=tap", `--test-reporter-destination=${tapFile}`];
  return run("tests", [pinnedNode, "--test", ...limits, ...people, ...programs, ...files]);
}

async function main() {
  const paths = process.argv.slice(2).map((path) => path.replace(/^\.\//, ""));
  const unfit = whyUnfit();
  if (unfit === undefined) await ensurePackages();
  await ensureNodeModules();
  const canBuild = ["cargo", "cc"].every((program) => spawnSync(program, ["--version"]).status === 0);
  if (unfit === undefined || canBuild) await ensureChronus();

  const { files, notRun } = selectFiles(unfit, paths);
  if (!canBuild) notRun.push("chronus: no cargo or no C compiler (cc)");
  const failed = paths.length === 0 ? runChecks(canBuild) : [];
  if (!runTests(files)) failed.push("tests");

  console.log("");
  for (const line of notRun) console.log(`not run  ${line}`);
  for (const name of failed) console.log(`FAILED   ${name}`);
  console.log(closingLines());
  process.exitCode = failed.length === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
