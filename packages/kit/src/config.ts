import { readFileSync } from "node:fs";
import { PlatformError } from "@dsec/contracts";
import type { Static, TSchema } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { Value } from "typebox/value";

/**
 * Settings of a daemon: defaults of the schema, then the JSON object of `file`, then `overrides`. Unknown keys and wrong values
 * stop the start with the path of the key.
 */
export function loadConfig<Schema extends TSchema>(
  schema: Schema,
  sources: { readonly file?: string; readonly overrides?: Readonly<Record<string, unknown>> },
): Static<Schema> {
  const fromFile = sources.file === undefined ? {} : readConfigFile(sources.file);
  const merged: unknown = Value.Default(schema, { ...fromFile, ...sources.overrides });
  return parse(schema, merged, "configuration");
}

/** `value` as `schema` says, or `invalid_request` naming `subject` and the first wrong path. */
export function parse<Schema extends TSchema>(
  schema: Schema,
  value: unknown,
  subject: string,
): Static<Schema> {
  if (check(schema, value)) return value as Static<Schema>;
  const [first] = Value.Errors(schema, value);
  const place = first === undefined || first.instancePath === "" ? "" : ` at ${first.instancePath}`;
  throw new PlatformError(
    "invalid_request",
    `Wrong ${subject}${place}: ${first?.message ?? "not as expected"}`,
  );
}

interface Check {
  uses: number;
  compiled: Validator | undefined;
}

const checks = new WeakMap<TSchema, Check>();
/** Compiling takes milliseconds and makes checks some 60 times faster: worth it for what is checked again. */
const usesBeforeCompile = 3;

function check(schema: TSchema, value: unknown): boolean {
  const known = checks.get(schema) ?? { uses: 0, compiled: undefined };
  checks.set(schema, known);
  known.uses += 1;
  if (known.uses < usesBeforeCompile) return Value.Check(schema, value);
  known.compiled ??= Compile(schema);
  return known.compiled.Check(value);
}

/** `parseJson` that fills in the defaults of the schema first. */
export function parseJsonWithDefaults<Schema extends TSchema>(
  schema: Schema,
  text: string,
  subject: string,
): Static<Schema> {
  return parse(schema, Value.Default(schema, jsonOf(text, subject)), subject);
}

/** `parse` of JSON text; text that is not JSON is `invalid_request` too. */
export function parseJson<Schema extends TSchema>(
  schema: Schema,
  text: string,
  subject: string,
): Static<Schema> {
  return parse(schema, jsonOf(text, subject), subject);
}

function jsonOf(text: string, subject: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PlatformError("invalid_request", `Wrong ${subject}: not JSON`, { cause });
  }
}

function readConfigFile(file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new PlatformError("invalid_request", `Cannot read configuration file "${file}"`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new PlatformError("invalid_request", `Configuration file "${file}" is not a JSON object`);
  }
  return value as Record<string, unknown>;
}
