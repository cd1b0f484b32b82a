import assert from "node:assert/strict";
import { test } from "node:test";
import { errorCodes, httpStatusOf } from "./errors.ts";
import { type Cause, causeFaults, causeOfError, failureOf } from "./failures.ts";

const causes = Object.keys(causeFaults) as Cause[];

test("failureOf() makes exactly the ends of caller, infra and verifier maskable", () => {
  for (const cause of causes) {
    const { fault, maskable } = failureOf(cause);
    assert.equal(fault, causeFaults[cause]);
    assert.equal(maskable, ["caller", "infra", "verifier"].includes(fault), cause);
  }
});

test("failureOf() blames the policy when a limit on time ends a sandbox while a command of the agent runs", () => {
  for (const cause of ["idle_expired", "lifetime_expired"] as const) {
    assert.equal(failureOf(cause).maskable, true);
    assert.equal(failureOf(cause, { whileCommandRan: true }).fault, "policy");
    assert.equal(failureOf(cause, { whileCommandRan: true }).maskable, false);
  }
});

test("an agent that kills the platform's processes of its sandbox cannot mask its failure", () => {
  assert.equal(failureOf("agent_killed").maskable, false);
});

test("causeOfError() knows a cause for every error code", () => {
  for (const code of errorCodes) assert.ok(causes.includes(causeOfError(code)), code);
});

test("every error code has an HTTP status of the client or server class", () => {
  for (const code of errorCodes) assert.ok(httpStatusOf(code) >= 400 && httpStatusOf(code) < 600, code);
});
