import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";

/** Below this a body is collected: one write instead of several, and none of the work that streams cost. */
const smallBytesMax = 64 * 1024;

/** The whole body when its headers say that it is small, else the stream itself. Rejects when the stream breaks. */
export async function collectSmall(body: Readable, headers: IncomingHttpHeaders): Promise<Buffer | Readable> {
  const length = Number(headers["content-length"] ?? Number.NaN);
  if (!(length <= smallBytesMax)) return body;
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk as Buffer);
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
}
