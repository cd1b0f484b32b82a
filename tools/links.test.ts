// Links and paths in the documents lead somewhere.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { readSources, repositoryRoot, type Sources } from "./repository.ts";

/** Documents that show what a later part will hold; their paths in backquotes are plans, their links must hold. */
const plans = new Set(["STYLE.md", "docs/ARCHITECTURE.md"]);

const linkPattern = /\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)/g;
const pathPattern = /`((?:packages|tests|tools|docs|bench|native|deploy|tasks)\/[\w./-]+)`/g;

/** Links and back-quoted repository paths that do not exist. `exists` takes a path relative to the root. */
function findDeadLinks(sources: Sources, exists: (path: string) => boolean): string[] {
  assert.ok(sources.size > 0, "no document was looked at");
  return [...sources].flatMap(([path, text]) => {
    const links = [...text.matchAll(linkPattern)].map(([, target = ""]) =>
      posix.join(posix.dirname(path), target),
    );
    const paths = plans.has(path) ? [] : [...text.matchAll(pathPattern)].map(([, target = ""]) => target);
    return [...links, ...paths].filter((target) => !exists(target)).map((target) => `${path}: no ${target}`);
  });
}

test("links and paths of the documents exist", () => {
  const exists = (path: string): boolean => existsSync(join(repositoryRoot, path));
  assert.deepEqual(findDeadLinks(readSources(/\.md$/), exists), []);
});

test("findDeadLinks() finds a dead link and a dead path, and nothing else", () => {
  const text =
    "[a](guide.md#top) [b](gone.md) [c](https://example.com) `tools/check.ts` `tools/gone.ts` `dsec up`";
  const exists = (path: string): boolean => ["docs/guide.md", "tools/check.ts"].includes(path);
  assert.deepEqual(findDeadLinks(new Map([["docs/a.md", text]]), exists), [
    "docs/a.md: no docs/gone.md",
    "docs/a.md: no tools/gone.ts",
  ]);
  assert.throws(() => findDeadLinks(new Map(), exists), /no document was looked at/);
});
