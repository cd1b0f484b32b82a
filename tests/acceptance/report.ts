// Acceptance tests measure clauses; `npm run accept` prints them as one table and gives tests their flags.
import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";

/** What a measured value must be. Exactly one of the bounds is given. */
export interface Limit {
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly equals?: number | string | boolean;
  /** Printed behind the numbers, as "ms". */
  readonly unit?: string;
}

/** One row of the table, as it stands in the report file: one JSON object a line. */
export type ReportLine =
  | {
      readonly kind: "clause";
      readonly name: string;
      readonly measured: string;
      readonly limit: string;
      readonly ok: boolean;
    }
  | { readonly kind: "flag"; readonly name: string };

type Measured = number | string | boolean;

/**
 * Measures one clause of the acceptance, records it, and throws an AssertionError when it misses its limit. When
 * `measure` itself throws, that is recorded as a miss and thrown on.
 */
export async function clause(
  name: string,
  { limit, measure }: { readonly limit: Limit; readonly measure: () => Measured | Promise<Measured> },
): Promise<void> {
  const text = describeLimit(limit);
  let measured: Measured;
  try {
    measured = await measure();
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n", 1)[0] : String(error);
    record({ kind: "clause", name, measured: `failed: ${reason}`, limit: text, ok: false });
    throw error;
  }
  const ok = isWithin(limit, measured);
  record({ kind: "clause", name, measured: withUnit(measured, limit), limit: text, ok });
  assert.ok(ok, `${name}: measured ${withUnit(measured, limit)}, limit ${text}`);
}

/** A flag of `npm run accept -- N --name value`, or the default. The run fails when no test asks for a given flag. */
export function flag(name: string, fallback: string): string {
  record({ kind: "flag", name });
  const given: unknown = JSON.parse(process.env["DSEC_ACCEPT_FLAGS"] ?? "{}");
  assert.ok(typeof given === "object" && given !== null, "DSEC_ACCEPT_FLAGS is no JSON object");
  const value: unknown = Reflect.get(given, name);
  return typeof value === "string" ? value : fallback;
}

/** The size of a long situation: `short` under `npm test`, `full` under `npm run accept`, `soak` under `npm run soak`. */
export function sized<Size>(sizes: { readonly short: Size; readonly full: Size; readonly soak: Size }): Size {
  const length = process.env["DSEC_TEST_LENGTH"] ?? "short";
  assert.ok(length === "short" || length === "full" || length === "soak", `DSEC_TEST_LENGTH is "${length}"`);
  return sizes[length];
}

function isWithin({ atMost, atLeast, equals }: Limit, measured: Measured): boolean {
  if (equals !== undefined) return measured === equals;
  if (typeof measured !== "number") return false;
  if (atMost !== undefined) return measured <= atMost;
  return atLeast !== undefined && measured >= atLeast;
}

function describeLimit(limit: Limit): string {
  if (limit.equals !== undefined) return withUnit(limit.equals, limit);
  if (limit.atMost !== undefined) return `≤ ${withUnit(limit.atMost, limit)}`;
  assert.ok(limit.atLeast !== undefined, "a limit needs a bound");
  return `≥ ${withUnit(limit.atLeast, limit)}`;
}

function withUnit(value: Measured, { unit }: Limit): string {
  const text = typeof value === "number" ? String(Math.round(value * 1000) / 1000) : String(value);
  return unit === undefined ? text : `${text} ${unit}`;
}

function record(line: ReportLine): void {
  const path = process.env["DSEC_ACCEPT_REPORT"];
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(line)}\n`);
}
