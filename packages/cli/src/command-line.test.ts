import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTable, readArguments, splitAtDashes, UsageError, wholeNumber } from "./command-line.ts";
import { commandNames, loadCommand } from "./commands.ts";

test("readArguments() refuses unknown options as wrong usage", () => {
  assert.throws(() => readArguments(["--nope"], {}), UsageError);
});

test("splitAtDashes() leaves everything behind the first -- to the command", () => {
  assert.deepEqual(splitAtDashes(["--json", "--", "sh", "-c", "--", "--json"]), {
    own: ["--json"],
    command: ["sh", "-c", "--", "--json"],
  });
  assert.deepEqual(splitAtDashes(["id"]), { own: ["id"], command: [] });
});

test("wholeNumber() takes whole numbers within bounds and nothing else", () => {
  assert.equal(wholeNumber("n", "12", { min: 1, max: 12 }), 12);
  for (const text of ["0", "13", "1.5", "-1", "1e1", "", " 2"]) {
    assert.throws(() => wholeNumber("n", text, { min: 1, max: 12 }), UsageError, text);
  }
});

test("formatTable() aligns columns and leaves no space at the ends of lines", () => {
  assert.equal(
    formatTable([
      ["A", "B"],
      ["long", ""],
      ["x", "y"],
    ]),
    "A     B\nlong\nx     y",
  );
});

for (const name of commandNames) {
  test(`dsec ${name} has a summary and a help that documents its exit codes and --json`, async () => {
    const command = await loadCommand(name);
    assert.ok(command !== undefined);
    assert.equal(command.name, name);
    assert.ok(command.summary.length > 0 && command.summary.length < 70);
    assert.match(command.help, /^dsec /);
    assert.match(command.help, /Exit codes?:/);
    assert.match(command.help, /--json/);
    for (const line of command.help.split("\n")) assert.ok(line.length <= 120, line);
  });
}

test("loadCommand() knows no other name, not even one that objects inherit", async () => {
  assert.equal(await loadCommand("toString"), undefined);
});
