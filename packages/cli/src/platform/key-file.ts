import { readFileSync } from "node:fs";
import { PlatformError } from "@dsec/contracts";

/** The admin key that control wrote when it first started. */
export function readKey(keyFile: string): string {
  try {
    return readFileSync(keyFile, "utf8").trim();
  } catch (cause) {
    const hint = "control writes it only when it makes its database";
    throw new PlatformError("unauthenticated", `Cannot read the admin key at ${keyFile}; ${hint}`, { cause });
  }
}
