// Every promise of SPECIFICATION.md names a test or a benchmark that exists.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readSources, repositoryRoot } from "./repository.ts";

const holderPattern = /`((?:tests|bench|packages|tools|native)\/[\w./-]+)`/g;

/** Rows of tables whose head ends with "held by", and that name no holder or one that does not exist. */
function findBrokenPromises(text: string, exists: (path: string) => boolean): string[] {
  const problems: string[] = [];
  let rows = 0;
  let inTable = false;
  for (const line of text.split("\n")) {
    if (/\|\s*held by\s*\|$/.test(line)) inTable = true;
    else if (!line.startsWith("|")) inTable = false;
    else if (inTable && !/^[|\s:-]+$/.test(line)) {
      rows += 1;
      const [, promise = "", ...cells] = line.split("|").map((cell) => cell.trim());
      const holders = [...cells.join(" ").matchAll(holderPattern)].map(([, path = ""]) => path);
      if (holders.length === 0) problems.push(`"${promise}" names no test`);
      problems.push(...holders.filter((path) => !exists(path)).map((path) => `"${promise}": no ${path}`));
    }
  }
  assert.ok(rows > 0, "no promise was looked at");
  return problems;
}

test("every promise of SPECIFICATION.md is held by something that exists", () => {
  const text = readSources(/^SPECIFICATION\.md$/).get("SPECIFICATION.md") ?? "";
  assert.deepEqual(
    findBrokenPromises(text, (path) => existsSync(join(repositoryRoot, path))),
    [],
  );
});

test("findBrokenPromises() finds a promise without a test and one whose test is gone", () => {
  const text = [
    "| promise | held by |",
    "|---|---|",
    "| fast | `tests/e2e/fast.test.ts` |",
    "| small | our word |",
    "| safe | `tests/e2e/gone.test.ts` |",
  ].join("\n");
  assert.deepEqual(
    findBrokenPromises(text, (path) => path === "tests/e2e/fast.test.ts"),
    ['"small" names no test', '"safe": no tests/e2e/gone.test.ts'],
  );
  assert.throws(() => findBrokenPromises("no table", () => true), /no promise was looked at/);
});
