import { PlatformError } from "@dsec/contracts";
import type { Static, TSchema } from "typebox";
import { Value } from "typebox/value";
import { parse } from "./config.ts";

/**
 * A query string as `schema` says: text becomes integers, booleans and arrays where the schema wants them, defaults are
 * filled in, unknown or repeated keys are refused. (Only queries are coerced; bodies never are.)
 */
export function parseQuery<Schema extends TSchema>(schema: Schema, query: unknown): Static<Schema> {
  const properties = (schema as unknown as { properties: Record<string, { type?: string }> }).properties;
  const values: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(query as Record<string, string | string[]>)) {
    values[key] = coerce(key, value, properties[key]?.type);
  }
  return parse(schema, Value.Default(schema, values), "query");
}

function coerce(key: string, value: string | string[], type: string | undefined): unknown {
  if (type === "array") return Array.isArray(value) ? value : [value];
  if (Array.isArray(value))
    throw new PlatformError("invalid_request", `Wrong query at /${key}: given more than once`);
  if (type === "integer" && /^-?\d{1,16}$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}
