import assert from "node:assert/strict";
import { test } from "node:test";
import { runStep, SetupError } from "./progress.mjs";

test("runStep() resolves when the command ends with 0", async () => {
  await runStep("Doing nothing", ["true"]);
});

test("runStep() rejects with the end of the output and the place of the whole", async () => {
  await assert.rejects(
    runStep("Trying", ["sh", "-c", "echo first; echo broken pipe >&2; exit 7"]),
    (error: unknown) => {
      assert.ok(error instanceof SetupError);
      assert.match(error.message, /^Trying: exit code 7\n[^]*first\n {2}broken pipe\n[^]*setup\.log$/);
      return true;
    },
  );
});

test("runStep() rejects when the program does not exist", async () => {
  await assert.rejects(runStep("Trying", ["no-such-program"]), /ENOENT/);
});

test("runStep() passes an ending signal on to the command", async () => {
  const ended = runStep("Waiting", ["sleep", "60"]);
  process.emit("SIGTERM", "SIGTERM");
  await assert.rejects(ended, /ended by SIGTERM/);
});
