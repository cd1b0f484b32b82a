/** Longest line that the platform may send. */
const lineLengthMax = 4 * 1024 * 1024;

/** The lines of UTF-8 text, without their ends; empty ones are left out. Throws when a line grows beyond all bounds. */
export async function* readLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of source) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > lineLengthMax) throw new RangeError("a line of the answer is too long");
    for (const line of parts) if (line !== "") yield line;
  }
  const last = rest + decoder.decode();
  if (last !== "") yield last;
}
