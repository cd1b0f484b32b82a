import assert from "node:assert/strict";
import { test } from "node:test";
import { isPlatformError } from "@dsec/contracts";
import fc from "fast-check";
import { parseTaskToml } from "./task-toml.ts";

const good = `
name = "one"
language = "c++"
time_limit_s = 2.5
[test]
command = "make test"
[repo]
author_name = "Some Author"
author_email = "author@example.invalid"
date = 2024-01-31T12:00:00+02:00
message = "First"
[attempts]
"fix-it" = "pass"
look = "fail"
`;

test("parseTaskToml() reads every setting", () => {
  assert.deepEqual(parseTaskToml(good, "task.toml"), {
    name: "one",
    language: "c++",
    testCommand: "make test",
    timeLimitMs: 2_500,
    commit: {
      authorName: "Some Author",
      authorEmail: "author@example.invalid",
      date: new Date("2024-01-31T10:00:00Z"),
      message: "First",
    },
    expected: new Map([
      ["fix-it", "pass"],
      ["look", "fail"],
    ]),
  });
});

const refused: readonly (readonly [string, string, string, RegExp])[] = [
  [
    "an unknown key",
    'language = "c++"',
    'language = "c++"\nimage = "x"',
    /^task\.toml: image is not a known/,
  ],
  ["an unknown key of a table", "[repo]", "[repo]\nbranch = 'x'", /^task\.toml: repo\.branch is not a known/],
  ["a missing key", 'command = "make test"', "", /^task\.toml: test\.command is missing/],
  ["an empty command", '"make test"', '"  "', /^task\.toml: test\.command must be a shell command/],
  ["a NUL in a command", '"make test"', '"a\\u0000b"', /^task\.toml: test\.command must be a shell command/],
  ["a long command", '"make test"', `"${"x".repeat(17_000)}"`, /^task\.toml: test\.command must be/],
  ["a table in the place of text", 'name = "one"', "name = {}", /^task\.toml: name must be text/],
  [
    "text in the place of a table",
    "[test]\ncommand",
    'test = "x"\n[z]\ncommand',
    /^task\.toml: test must be a/,
  ],
  ["a name with a path", '"one"', '"../one"', /^task\.toml: name must be text/],
  ["no time", "2.5", "0", /^task\.toml: time_limit_s must be a number of seconds, 1 to 3600/],
  ["too much time", "2.5", "inf", /^task\.toml: time_limit_s must be/],
  ["time that is no number", "2.5", "nan", /^task\.toml: time_limit_s must be/],
  ["a date without a zone", "+02:00", "", /^task\.toml: repo\.date must be a date with time and zone/],
  ["a line end in the author", "Some Author", "Some\\nAuthor", /^task\.toml: repo\.author_name must be/],
  ["another verdict", 'look = "fail"', 'look = "maybe"', /^task\.toml: attempts\.look must be "pass" or/],
  ["a bad name of an attempt", "look =", '"a b" =', /^task\.toml: attempts\.a b must have a name like/],
  ["no attempt", '"fix-it" = "pass"\nlook = "fail"', "", /^task\.toml: attempts: must name 1 to 64/],
  ["what is not TOML", "[test]", "[test", /^task\.toml:5:\d+: not TOML/],
];

for (const [what, before, after, message] of refused) {
  test(`parseTaskToml() refuses ${what} and names the key`, () => {
    assert.ok(good.includes(before));
    assert.throws(() => parseTaskToml(good.replace(before, after), "task.toml"), {
      code: "invalid_request",
      message,
    });
  });
}

test("parseTaskToml() refuses a file that is too large", () => {
  assert.throws(() => parseTaskToml(`${good}#${"x".repeat(70_000)}`, "f"), /larger than 65536 bytes/);
});

test("parseTaskToml() answers damaged text with settings or invalid_request, nothing else", () => {
  const damage = fc.record({
    at: fc.nat(good.length),
    remove: fc.nat(20),
    insert: fc.string({ unit: "binary", maxLength: 8 }),
  });
  fc.assert(
    fc.property(damage, ({ at, remove, insert }) => {
      try {
        parseTaskToml(good.slice(0, at) + insert + good.slice(at + remove), "task.toml");
      } catch (error) {
        assert.ok(isPlatformError(error) && error.code === "invalid_request", String(error));
      }
    }),
    { numRuns: 500 },
  );
});
