// The steps between a fresh clone and a platform that can start. Each looks first and does nothing when nothing is missing.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { debianPackages } from "./packages.mjs";
import { pinnedNode } from "./pinned-node.mjs";
import { root, runStep, SetupError, say } from "./progress.mjs";

const chronusDir = join(root, "native/chronus");

/** Read by cargo wherever below the root it is started. */
const cargoConfig = join(root, ".cargo/config.toml");

/** Where cargo leaves chronus. */
const chronusBinary = join(chronusDir, "target/x86_64-unknown-linux-gnu/release/chronus");

/** @returns {import("./packages.mjs").DebianPackage[]} those that dpkg does not call installed */
export function missingPackages() {
  const names = debianPackages.map(({ name }) => name);
  const query = spawnSync("dpkg-query", ["-W", "-f", "${Package} ${db:Status-Status}\n", ...names], {
    encoding: "utf8",
  });
  if (query.error) throw new SetupError(`Cannot ask dpkg what is installed: ${query.error.message}`);
  const installed = new Set(
    query.stdout.split("\n").flatMap((line) => (line.endsWith(" installed") ? [line.split(" ")[0]] : [])),
  );
  return debianPackages.filter(({ name }) => !installed.has(name));
}

/** Lists the Debian packages that are missing, then installs them from the host's own sources. */
export async function ensurePackages() {
  const missing = missingPackages();
  if (missing.length === 0) return;
  say("Debian packages to install:");
  for (const { name, reason } of missing) say(`  ${name}: ${reason}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const wait = ["-o", "DPkg::Lock::Timeout=120"];
  await runStep("Reading Debian's package lists", ["apt-get", ...wait, "update"], env);
  const names = missing.map(({ name }) => name);
  const install = ["apt-get", ...wait, "install", "-y", "--no-install-recommends", ...names];
  await runStep(`Installing ${names.join(", ")}`, install, env);
}

/** Installs npm packages, the pinned Node.js among them, when they are absent or older than the lock file. */
export async function ensureNodeModules() {
  if (
    isNewer(join(root, "node_modules/.package-lock.json"), join(root, "package-lock.json")) &&
    existsSync(pinnedNode)
  ) {
    return;
  }
  await runStep("Installing npm packages and the pinned Node.js", ["npm", "ci", "--ignore-scripts=false"]);
}

/** Builds chronus when its sources are newer than the binary. */
export async function ensureChronus() {
  const sources = ["Cargo.toml", "Cargo.lock", ...rustSources()].map((path) => join(chronusDir, path));
  if ([...sources, cargoConfig].every((path) => isNewer(chronusBinary, path))) return;
  requireCargo();
  const manifest = join(chronusDir, "Cargo.toml");
  await runStep("Building chronus", ["cargo", "build", "--release", "--locked", "--manifest-path", manifest]);
  const now = new Date();
  utimesSync(chronusBinary, now, now); // Cargo leaves an unchanged binary as old as it was.
}

/** @returns {string[]} */
function rustSources() {
  return readdirSync(join(chronusDir, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".rs"))
    .map((path) => join("src", path));
}

function requireCargo() {
  try {
    execFileSync("cargo", ["--version"], { stdio: "ignore" });
  } catch {
    throw new SetupError(
      "cargo is missing: chronus is built from source. Install Rust's stable toolchain (rustup).",
    );
  }
}

/**
 * @param {string} path
 * @param {string} than
 * @returns {boolean} whether `path` exists and is at least as new
 */
function isNewer(path, than) {
  return existsSync(path) && statSync(path).mtimeMs >= statSync(than).mtimeMs;
}
