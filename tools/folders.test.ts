// A folder with more than five source files says in a README what it is for. In Rust the module's own comment does.
import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { readSources, type Sources } from "./repository.ts";

const filesMax = 5;

/** A README stands in the folder, or beside `src`; a Rust module opens with `//!`. */
function isExplained(folder: string, sources: Sources): boolean {
  const readmes = [folder, ...(folder.endsWith("/src") ? [posix.dirname(folder)] : [])];
  if (readmes.some((place) => sources.has(`${place}/README.md`))) return true;
  return ["mod.rs", "lib.rs", "main.rs"].some((name) => sources.get(`${folder}/${name}`)?.startsWith("//!"));
}

/** Folders with more than five source files, tests aside, that nothing explains. */
function findUnexplainedFolders(sources: Sources): string[] {
  assert.ok(sources.size > 0, "no file was looked at");
  const counts = new Map<string, number>();
  for (const path of sources.keys()) {
    if (!/\.(?:ts|mjs|rs)$/.test(path) || path.endsWith(".test.ts")) continue;
    counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
  }
  return [...counts].flatMap(([folder, count]) =>
    count > filesMax && !isExplained(folder, sources) ? [`${folder}: ${count} files and no README.md`] : [],
  );
}

test("every large folder is explained", () => {
  assert.deepEqual(
    findUnexplainedFolders(readSources(/^(?:packages|native|bench|tests|tools)\/.*\.(?:ts|mjs|rs|md)$/)),
    [],
  );
});

test("findUnexplainedFolders() wants a README, beside src or in the folder, or a module's comment", () => {
  const six = (folder: string): [string, string][] =>
    ["a", "b", "c", "d", "e", "mod"].map((name) => [`${folder}/${name}.rs`, "//! What it is for.\n"]);
  assert.deepEqual(findUnexplainedFolders(new Map(six("native/x/src/init"))), []);
  const typescript = new Map(six("packages/x/src").map(([path]) => [path.replace(".rs", ".ts"), ""]));
  assert.deepEqual(findUnexplainedFolders(typescript), ["packages/x/src: 6 files and no README.md"]);
  assert.deepEqual(findUnexplainedFolders(typescript.set("packages/x/README.md", "# x")), []);
  assert.throws(() => findUnexplainedFolders(new Map()), /no file was looked at/);
});
