// Every error code has an HTTP status of an error; the table is closed and in one place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorCodes, httpStatusOf } from "@dsec/contracts";

/** Codes whose status says success or nothing at all, or whose name is not snake_case. */
function findBadCodes(codes: readonly string[], statusOf: (code: string) => number | undefined): string[] {
  assert.ok(codes.length > 0, "no error code was looked at");
  return codes.filter((code) => {
    const status = statusOf(code) ?? 0;
    return !/^[a-z]+(?:_[a-z]+)*$/.test(code) || status < 400 || status > 599;
  });
}

test("every error code has a status", () => {
  const statuses = new Map<string, number>(errorCodes.map((code) => [code, httpStatusOf(code)]));
  assert.deepEqual(
    findBadCodes(errorCodes, (code) => statuses.get(code)),
    [],
  );
});

test("findBadCodes() refuses a code without an error's status, and a badly written one", () => {
  const statuses = new Map([
    ["fine", 404],
    ["success", 200],
    ["notSnake", 400],
  ]);
  const codes = ["fine", "success", "notSnake", "absent"];
  assert.deepEqual(
    findBadCodes(codes, (code) => statuses.get(code)),
    ["success", "notSnake", "absent"],
  );
  assert.throws(() => findBadCodes([], () => 400), /no error code was looked at/);
});
