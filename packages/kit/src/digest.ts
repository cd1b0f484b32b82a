import { hash } from "node:crypto";

/**
 * SHA-256 (64 hexadecimal digits) of a JSON value, whatever the order of its keys: how a repeated request is recognised. Control and
 * edge take it of the validated body with its defaults.
 */
export function digestOf(value: unknown): string {
  return hash("sha256", canonical(value), "hex");
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
