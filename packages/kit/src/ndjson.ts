import { once } from "node:events";
import type { Writable } from "node:stream";

/** Writes each value as one line, waiting whenever the reader is slower. Throws when the reader is gone. */
export async function writeLine(stream: Writable, value: unknown, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (stream.destroyed) throw new Error("the reader of the lines is gone");
  if (!stream.write(`${JSON.stringify(value)}\n`)) await once(stream, "drain", { signal });
}
