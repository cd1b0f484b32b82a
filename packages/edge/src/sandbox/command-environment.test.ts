import assert from "node:assert/strict";
import { test } from "node:test";
import { argvOf, environmentOf, inputOf } from "./command-environment.ts";
import { parsePasswd } from "./image-facts.ts";

const facts = {
  hasBash: true,
  accounts: parsePasswd(
    "root:x:0:0:root:/root:/bin/bash\n# no account\nuser:x:1000:1000::/home/user:/bin/sh\nbad:x:-1:0::/:\n",
  ),
};

test("environmentOf() knows the accounts of the image, and what callers give wins", () => {
  const environment = environmentOf(
    "user",
    facts,
    { A: "sandbox", B: "sandbox" },
    { A: "command", LANG: "de_DE.UTF-8" },
  );
  assert.deepEqual(environment, {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/home/user",
    USER: "user",
    LOGNAME: "user",
    LANG: "de_DE.UTF-8",
    TERM: "dumb",
    A: "command",
    B: "sandbox",
  });
  assert.equal(environmentOf({ uid: 1000, gid: 0 }, facts)["USER"], "user");
  assert.deepEqual(
    [environmentOf({ uid: 7, gid: 7 }, facts)["USER"], environmentOf({ uid: 7, gid: 7 }, facts)["HOME"]],
    ["7", "/"],
  );
});

test("environmentOf() leaks nothing of the platform's own environment", () => {
  process.env["DSEC_TEST_SECRET"] = "secret";
  assert.ok(!Object.values(environmentOf("root", facts)).includes("secret"));
  delete process.env["DSEC_TEST_SECRET"];
});

test("argvOf() wants exactly one of argv and shell, and the image's shell runs the latter", () => {
  assert.deepEqual(argvOf({ argv: ["a", "b"] }, facts), ["a", "b"]);
  assert.deepEqual(argvOf({ shell: "x" }, facts), ["/bin/bash", "-c", "x"]);
  assert.deepEqual(argvOf({ shell: "x" }, { ...facts, hasBash: false }), ["/bin/sh", "-c", "x"]);
  assert.throws(() => argvOf({}, facts), { code: "invalid_request" });
  assert.throws(() => argvOf({ argv: ["a"], shell: "x" }, facts), { code: "invalid_request" });
});

test("inputOf() takes text or bytes, not both", () => {
  assert.equal(inputOf({}), undefined);
  assert.deepEqual(inputOf({ stdin: "é" }), Buffer.from("é"));
  assert.deepEqual(inputOf({ stdinBase64: "AP8=" }), Buffer.from([0, 255]));
  assert.throws(() => inputOf({ stdin: "", stdinBase64: "" }), { code: "invalid_request" });
});
