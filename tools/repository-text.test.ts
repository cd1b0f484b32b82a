// The repository speaks of the software alone: it holds no path of the machine that it was written on and no registry's host name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readSources, type Sources } from "./repository.ts";

interface ForbiddenText {
  readonly pattern: RegExp;
  readonly reason: string;
  /** Applies to code alone: prose may speak of such a comment. */
  readonly codeOnly?: true;
}

// The patterns are written so that they do not match themselves.
const forbidden: readonly ForbiddenText[] = [
  {
    pattern: /(?<![\w.}])\/(?:home|Users)\/(?!user\b|agent\b)[a-z]/,
    reason: "a path of one developer's machine",
  },
  {
    pattern: /https?:\/\/(?:registry|index|static|files|deb|security|snapshot)\.[\w.-]+/,
    reason: "a registry's host name; the machine's own settings name it",
  },
  {
    pattern: /(?:\/\/|\*|#).*\b(?:TODO|FIXME|XXX)\b(?! \(#\d+\))/,
    reason: "work left without an issue number; write it as TODO (#12)",
    codeOnly: true,
  },
  {
    pattern: /(?:oxlint|eslint)-disable(?!.* -- \w)/,
    reason: "a rule switched off without a reason; add `-- why`",
    codeOnly: true,
  },
];

/** Every forbidden text as `path:line: reason`. */
function findForbiddenText(sources: Sources): string[] {
  assert.ok(sources.size > 0, "no file was looked at");
  return [...sources].flatMap(([path, text]) =>
    text
      .split("\n")
      .flatMap((line, index) =>
        forbidden
          .filter(({ pattern, codeOnly }) => pattern.test(line) && !(codeOnly && path.endsWith(".md")))
          .map(({ reason }) => `${path}:${index + 1}: ${reason}`),
      ),
  );
}

const isText =
  /^(?!.*package-lock\.json$|tools\/repository-text\.test\.ts$).*\.(?:ts|mjs|json|md|rs|toml|sh|py|yml|yaml|c|h|txt)$|^\.ci\/run$/;

test("no tracked text names a developer's machine, a registry or unnumbered work", () => {
  assert.deepEqual(findForbiddenText(readSources(isText)), []);
});

for (const line of [
  'const home = "/home/alice";',
  "from https://registry.example.org",
  "deb http://deb.example.org/debian",
  "// TODO later",
  "// oxlint-disable-next-line no-console",
]) {
  test(`findForbiddenText() refuses "${line}"`, () => {
    assert.equal(findForbiddenText(new Map([["a.ts", line]])).length, 1);
  });
}

for (const line of [
  "/home/user/project",
  "// TODO (#12): say more",
  "// oxlint-disable-next-line no-console -- the only output",
  "`${directory}/home/x`",
]) {
  test(`findForbiddenText() lets "${line}" pass`, () => {
    assert.deepEqual(findForbiddenText(new Map([["a.ts", line]])), []);
  });
}

test("findForbiddenText() fails when it saw nothing", () => {
  assert.throws(() => findForbiddenText(new Map()), /no file was looked at/);
});
