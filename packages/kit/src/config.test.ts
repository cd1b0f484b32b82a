import assert from "node:assert/strict";
import { test } from "node:test";
import { Type } from "typebox";
import { loadConfig, parse, parseJson, parseJsonWithDefaults } from "./config.ts";

const strict = { additionalProperties: false } as const;
const Shape = () =>
  Type.Object(
    {
      name: Type.String({ pattern: "^[a-z]+$" }),
      size: Type.Integer({ minimum: 1, default: 4 }),
      kind: Type.Optional(Type.Union([Type.Literal("a"), Type.Object({ b: Type.Boolean() }, strict)])),
    },
    strict,
  );

test("parse() decides the same and names the same path at every use", () => {
  const shape = Shape();
  for (let use = 0; use < 6; use += 1) {
    assert.deepEqual(parse(shape, { name: "x", size: 1, kind: { b: true } }, "thing"), {
      name: "x",
      size: 1,
      kind: { b: true },
    });
    for (const [value, message] of [
      [{ name: "x", size: 0 }, /^Wrong thing at \/size: /],
      [{ name: "X", size: 1 }, /^Wrong thing at \/name: /],
      [{ name: "x", size: 1, more: 1 }, /^Wrong thing/],
      [{ name: "x" }, /^Wrong thing/],
      [{ name: "x", size: 1, kind: { b: true, c: 1 } }, /^Wrong thing/],
      [null, /^Wrong thing/],
      [[], /^Wrong thing/],
    ] as const) {
      assert.throws(() => parse(shape, value, "thing"), { code: "invalid_request", message });
    }
  }
});

test("parseJsonWithDefaults() fills in what parseJson() misses", () => {
  const shape = Shape();
  assert.throws(() => parseJson(shape, '{"name":"x"}', "thing"), { code: "invalid_request" });
  assert.deepEqual(parseJsonWithDefaults(shape, '{"name":"x"}', "thing"), { name: "x", size: 4 });
  assert.throws(() => parseJsonWithDefaults(shape, "{", "thing"), { message: "Wrong thing: not JSON" });
});

test("loadConfig() fills in defaults and stops at unknown keys", () => {
  assert.deepEqual(loadConfig(Shape(), { overrides: { name: "x" } }), { name: "x", size: 4 });
  assert.throws(() => loadConfig(Shape(), { overrides: { name: "x", sise: 1 } }), {
    code: "invalid_request",
  });
  assert.throws(() => loadConfig(Shape(), { file: "/nonexistent.json" }), { code: "invalid_request" });
});
