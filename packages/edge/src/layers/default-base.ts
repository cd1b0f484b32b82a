import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isPlatformError, type LayerManifest, PlatformError } from "@dsec/contracts";
import { bootstrapDebian, debianSuite, removeBuilt, runInside } from "../host/mmdebstrap.ts";
import { isSame, startTimeOf } from "../host/process-identity.ts";
import type { LayerStore, Progress } from "./store.ts";

/** The name of the default base layer in every store. */
export const defaultBaseName = "default";

/** Raised whenever the steps below change what is in the layer. */
const recipeVersion = 1;
const packages = [
  "ca-certificates",
  "curl",
  "g++",
  "gcc",
  "git",
  "iputils-ping",
  "less",
  "make",
  "nodejs",
  "patch",
  "procps",
  "python3",
  "sudo",
] as const;

export interface DefaultBaseOptions {
  readonly store: LayerStore;
  /** Directory for the build, some 600 MB; on the store's file system or any other. */
  readonly buildRoot: string;
}

/**
 * The default base layer, built when the store has none of this recipe: a small Debian of the host's release with compilers, Python,
 * Node and git, and the user `agent` (1000) who may use sudo. Nothing of an unfinished build stays; what a killed
 * one left is removed by the next. Throws `unavailable` where it cannot be built.
 */
export async function ensureDefaultBase(
  options: DefaultBaseOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<LayerManifest> {
  const suite = debianSuite();
  const recipe = `recipe ${recipeKey(suite ?? "none")}`;
  const present = await resolveOrUndefined(options.store);
  if (present?.provenance.startsWith(`${recipe}\n`)) return present;
  if (suite === undefined) {
    throw new PlatformError("unavailable", "Cannot build the default base: this host is not Debian");
  }
  await removeAbandoned(options.buildRoot);
  const scratch = await makeScratch(options.buildRoot);
  try {
    const directory = join(scratch, "root");
    await build({ directory, scratch }, progress, signal);
    const provenance = `${recipe}\nDebian ${suite}: ${packages.join(" ")}\n`;
    const source = { kind: "base", name: defaultBaseName, directory, provenance } as const;
    return await options.store.importDirectory(source, progress, signal);
  } catch (cause) {
    if (signal.aborted || isPlatformError(cause)) throw cause;
    throw new PlatformError("unavailable", "Cannot build the default base", { cause });
  } finally {
    await removeBuilt(scratch);
  }
}

function recipeKey(suite: string): string {
  const recipe = JSON.stringify({ recipeVersion, suite, architecture: process.arch, packages });
  return createHash("sha256").update(recipe).digest("hex").slice(0, 32);
}

async function build(
  place: { readonly directory: string; readonly scratch: string },
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { directory } = place;
  progress("installing Debian packages for the default base");
  await bootstrapDebian({ ...place, packages }, progress, signal);
  const account = ["useradd", "--create-home", "--uid", "1000", "--shell", "/bin/bash", "agent"] as const;
  await runInside(directory, account, signal);
  const sudoers = join(directory, "etc/sudoers.d/agent");
  await writeFile(sudoers, "agent ALL=(ALL:ALL) NOPASSWD: ALL\n");
  await chmod(sudoers, 0o440);
  await chmod(directory, 0o755);
}

async function resolveOrUndefined(store: LayerStore): Promise<LayerManifest | undefined> {
  try {
    return await store.resolve(defaultBaseName);
  } catch (error) {
    if (isPlatformError(error) && error.code === "not_found") return undefined;
    throw error;
  }
}

const scratchPattern = /^base-(\d+)-(\d+)-/;

/** Named after its owner, so that what a killed build left can be told from one that runs. apt downloads as a user of its own. */
async function makeScratch(buildRoot: string): Promise<string> {
  const scratch = await mkdtemp(join(buildRoot, `base-${process.pid}-${startTimeOf(process.pid) ?? 0}-`));
  await chmod(scratch, 0o711);
  return scratch;
}

async function removeAbandoned(buildRoot: string): Promise<void> {
  await mkdir(buildRoot, { recursive: true, mode: 0o711 });
  for (const name of await readdir(buildRoot)) {
    const owner = scratchPattern.exec(name);
    if (owner === null || isSame(Number(owner[1]), Number(owner[2]))) continue;
    await removeBuilt(join(buildRoot, name));
  }
}
