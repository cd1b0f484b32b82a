import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { LayerStore } from "@dsec/edge/layer-store";

const programs = [
  "bash",
  "cat",
  "env",
  "head",
  "id",
  "ls",
  "mkdir",
  "rm",
  "seq",
  "sleep",
  "sort",
  "stat",
  "true",
  "wc",
];

/**
 * Puts a base layer named `default` into the store at `layersDir`: some of the host's own programs with their libraries, so that a test of
 * the node needs no Debian archive and no minute.
 */
export async function makeSmallBase(layersDir: string): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "dsec-small-base-"));
  try {
    for (const name of ["dev", "etc", "proc", "root", "sys", "tmp", "home/user", "usr/bin"]) {
      mkdirSync(join(root, name), { recursive: true });
    }
    symlinkSync("usr/bin", join(root, "bin"));
    writeFileSync(
      join(root, "etc/passwd"),
      "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n",
    );
    for (const name of programs) copyProgram(root, name);
    symlinkSync("bash", join(root, "usr/bin/sh"));
    const store = new LayerStore(layersDir);
    await store.open();
    await store.importDirectory(
      { kind: "base", name: "default", directory: root, provenance: "test" },
      () => undefined,
      AbortSignal.timeout(60_000),
    );
  } finally {
    rmSync(root, { recursive: true });
  }
}

function copyProgram(root: string, name: string): void {
  const path = execFileSync("which", [name], { encoding: "utf8" }).trim();
  copyFileSync(realpathSync(path), join(root, "usr/bin", name));
  for (const [, library] of execFileSync("ldd", [path], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g)) {
    if (library === undefined) continue;
    mkdirSync(join(root, dirname(library)), { recursive: true });
    copyFileSync(realpathSync(library), join(root, library));
  }
}
