import { constants } from "node:fs";
import { access, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { type ProgramEnvironment, runProgram } from "./program.ts";

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where unpacked packages are kept between runs. */
export const peerCache: string = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "dsec",
  "peers",
);

/**
 * Makes the programs of Debian packages usable without installing them: fetched by the host's own apt sources and
 * unpacked into a cache, so that nothing of the system changes and no service starts. Throws with the reason when that
 * cannot be done.
 */
export async function unpackPackages(
  names: readonly string[],
  signal: AbortSignal,
): Promise<ProgramEnvironment> {
  const roots = names.map((name) => join(peerCache, name));
  for (const [index, name] of names.entries()) await unpack(name, roots[index] ?? "", signal);
  const folders = (...inside: string[]): string[] =>
    roots.flatMap((root) => inside.map((part) => join(root, part)));
  const libraries = await Promise.all(
    folders("usr/lib", "lib").map(async (folder) => {
      const names = await readdir(folder).catch(() => []); // Most packages have no libraries.
      return names.filter((name) => name.endsWith("-linux-gnu")).map((name) => join(folder, name));
    }),
  );
  return {
    ...environmentOfSystem(),
    PATH: [...folders("usr/bin", "usr/sbin"), systemPath].join(":"),
    LD_LIBRARY_PATH: libraries.flat().join(":"),
  };
}

/** The environment of programs that the system has. */
export function environmentOfSystem(): ProgramEnvironment {
  return { PATH: systemPath, LD_LIBRARY_PATH: "", LC_ALL: "C", HOME: tmpdir() };
}

async function unpack(name: string, root: string, signal: AbortSignal): Promise<void> {
  if (await exists(root)) return;
  const env = environmentOfSystem();
  const scratch = await mkdtemp(join(tmpdir(), "dsec-peer-"));
  try {
    await runProgram(["apt-get", "download", "--quiet", name], {
      env,
      cwd: scratch,
      timeoutMs: 180_000,
      signal,
    });
    const archive = (await readdir(scratch)).find((file) => file.endsWith(".deb"));
    if (archive === undefined) throw new Error(`apt-get gave no archive of ${name}`);
    await mkdir(peerCache, { recursive: true });
    const unpacked = await mkdtemp(join(peerCache, ".unpacking-"));
    await runProgram(["dpkg-deb", "--extract", join(scratch, archive), unpacked], { env, signal });
    await rename(unpacked, root);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}
