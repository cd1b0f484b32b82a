import { readFileSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "./process.ts";

/** A directory that becomes a Debian system. */
export interface Bootstrap {
  /** Made by this call; must not exist or be empty. */
  readonly directory: string;
  /** Holds what the build needs besides; owned by the caller. */
  readonly scratch: string;
  readonly packages: readonly string[];
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const unwantedPaths = ["doc", "man", "locale", "info", "lintian", "groff", "bug"];

/** Its own pid and mount namespaces: killing `unshare` ends all of it, and its bind mounts of /proc, /sys and /dev go with it. */
const isolate = [
  "unshare",
  "--mount",
  "--propagation",
  "private",
  "--pid",
  "--fork",
  "--kill-child",
  "--mount-proc",
] as const;

/** The release of Debian that this host runs, for example `bookworm`; undefined on other systems. */
export function debianSuite(): string | undefined {
  const release = readFileSync("/etc/os-release", "utf8");
  if (!/^ID=debian$/m.test(release)) return undefined;
  return /^VERSION_CODENAME=([a-z]+)$/m.exec(release)?.[1];
}

/**
 * Installs packages of the host's own Debian release from the host's own mirrors into a directory, as root. Documentation and
 * translations are left out; nothing of the host's apt settings stays inside. Some 40 s with the default base's packages.
 */
export async function bootstrapDebian(
  bootstrap: Bootstrap,
  progress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { directory, scratch } = bootstrap;
  const sources = join(scratch, "sources.list");
  const settings = join(scratch, "apt.conf");
  await writeFile(sources, await hostSources(signal), { mode: 0o600 });
  await writeFile(settings, await hostAptSettings(signal), { mode: 0o600 });
  const argv = [
    ...isolate,
    "mmdebstrap",
    "--mode=root",
    "--variant=minbase",
    "--format=directory",
    `--include=${bootstrap.packages.join(",")}`,
    `--aptopt=${settings}`,
    "--dpkgopt=force-unsafe-io",
    ...unwantedPaths.map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    "",
    directory,
    sources,
  ] as const;
  await runProgram(argv, {
    signal,
    abortSignal: "SIGKILL",
    onStderrLine: (line) => progress(line.replace(/^[IW]: /, "")),
  });
  await removeTraces(directory);
}

/** Runs a program of the new system inside it, with no more than its own files. */
export async function runInside(
  directory: string,
  argv: readonly [string, ...string[]],
  signal: AbortSignal,
): Promise<void> {
  await runProgram(["chroot", directory, ...argv], { signal });
}

/** Removes a built system, or a part of one. Other file systems that are mounted in it are left alone, and are an error. */
export async function removeBuilt(directory: string): Promise<void> {
  await runProgram(["rm", "-rf", "--one-file-system", "--", directory], {
    signal: AbortSignal.timeout(120_000),
  });
}

/** The Debian archives that the host uses: apt says them alike for every form of its source files. Other archives are left out. */
async function hostSources(signal: AbortSignal): Promise<string> {
  const { stdout } = await runProgram(
    [
      "apt-get",
      "indextargets",
      "--format",
      `deb [signed-by=${keyring}] $(REPO_URI) $(RELEASE) $(COMPONENT)`,
      "Created-By: Packages",
      "Origin: Debian",
    ],
    { signal },
  );
  const lines = [...new Set(stdout.split("\n").filter((line) => line !== ""))].toSorted();
  if (lines.length === 0) throw new Error("apt knows no Debian archive on this host: run apt-get update");
  return `${lines.join("\n")}\n`;
}

/** What the host needs to reach its mirrors: proxies, time-outs, certificates, passwords. */
async function hostAptSettings(signal: AbortSignal): Promise<string> {
  const { stdout } = await runProgram(["apt-config", "dump", "--no-empty", "Acquire"], { signal });
  const lines = stdout.split("\n").filter((line) => !/^Acquire::(IndexTargets|cdrom)/.test(line));
  return [
    ...lines,
    'Dir::Etc::netrc "/etc/apt/auth.conf";',
    'Dir::Etc::netrcparts "/etc/apt/auth.conf.d";',
    "",
  ].join("\n");
}

/** Takes away what belongs to the building host or changes with every build. Device nodes are not for layers. */
async function removeTraces(directory: string): Promise<void> {
  const traces = [
    "etc/apt/sources.list",
    "etc/apt/apt.conf.d/99mmdebstrap",
    "etc/apt/auth.conf",
    "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
    "etc/resolv.conf",
    "var/cache/ldconfig/aux-cache",
    "var/lib/systemd/random-seed",
  ];
  for (const trace of traces) await rm(join(directory, trace), { force: true });
  for (const emptied of ["dev", "tmp", "run", "etc/apt/sources.list.d", "etc/apt/auth.conf.d"])
    await empty(join(directory, emptied));
  for (const emptied of ["var/lib/apt/lists", "var/cache/apt", "var/cache/debconf", "var/log"])
    await empty(join(directory, emptied));
  for (const name of unwantedPaths) await empty(join(directory, "usr/share", name));
  // No host name of the builder, and an id that no two systems share must not be in an image.
  await writeFile(join(directory, "etc/hostname"), "sandbox\n");
  await writeFile(join(directory, "etc/machine-id"), "");
}

async function empty(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(directory)) await removeBuilt(join(directory, name));
}
