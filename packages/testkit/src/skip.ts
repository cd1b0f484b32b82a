import { accessSync } from "node:fs";
import { join } from "node:path";

const chronus = join(
  import.meta.dirname,
  "../../../native/chronus/target/x86_64-unknown-linux-gnu/release/chronus",
);

/** Why real sandboxes cannot run here, for the `skip` of a test; false when they can. */
export function reasonToSkip(): string | false {
  if (process.getuid?.() !== 0) return "needs root";
  try {
    accessSync(chronus);
    return false;
  } catch {
    return "chronus is not built: npm start builds it";
  }
}
