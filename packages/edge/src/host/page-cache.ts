import { open } from "node:fs/promises";

const pieceBytes = 1024 * 1024;

/**
 * Reads a file into the page cache, `bytesMax` bytes at the most. The pages are charged to this process: a page that a sandbox reads first is
 * charged to that sandbox, and lost for all others when it ends.
 */
export async function readIntoPageCache(path: string, bytesMax: number, signal: AbortSignal): Promise<void> {
  const file = await open(path, "r");
  try {
    const piece = Buffer.allocUnsafe(pieceBytes);
    for (let position = 0; position < bytesMax && !signal.aborted; ) {
      const { bytesRead } = await file.read(piece, 0, Math.min(pieceBytes, bytesMax - position), position);
      if (bytesRead === 0) return;
      position += bytesRead;
    }
  } finally {
    await file.close();
  }
}
