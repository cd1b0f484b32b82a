import type { OutputStream } from "@dsec/contracts";
import { wait } from "@dsec/kit";
import type { OutputHandlers } from "../chronus/init-client.ts";
import type { Commands } from "./commands.ts";

/** More than init stores of one stream (8 MiB at each end), so that this bounds memory and cuts nothing. */
const bytesMax = 17 * 1024 * 1024;
/** A running command's stored output has arrived when nothing more came for this long. */
const quietMs = 25;

export interface StoredOutput {
  /** Offset of the first byte of `bytes`. */
  readonly offset: number;
  readonly nextOffset: number;
  readonly dropped: number;
  readonly hasEnded: boolean;
  readonly bytes: Buffer;
}

/** What is stored of a stream from `offset` on, at this moment. Throws `not_found`, or the state of the sandbox. */
export async function readStoredOutput(
  commands: Commands,
  request: { readonly commandId: string; readonly stream: OutputStream; readonly offset: number },
): Promise<StoredOutput> {
  const wanted = request.stream === "stdout" ? 1 : 2;
  const chunks: Buffer[] = [];
  let bytes = 0;
  let dropped = 0;
  let droppedBefore = 0;
  let arrivals = 0;
  let hasStreamEnded = false;
  const handlers: OutputHandlers = {
    output: (stream, chunk) => {
      arrivals++;
      channel.consumed(chunk.length);
      if (stream !== wanted || bytes >= bytesMax) return;
      chunks.push(Buffer.from(chunk));
      bytes += chunk.length;
    },
    gap: (stream, length) => {
      if (stream !== wanted) return;
      dropped += length;
      if (bytes === 0) droppedBefore += length;
    },
    eof: (stream) => {
      if (stream === wanted) hasStreamEnded = true;
    },
  };
  const offsets = {
    stdoutOffset: wanted === 1 ? request.offset : 0,
    stderrOffset: wanted === 2 ? request.offset : 0,
  };
  const channel = commands.follow({ commandId: request.commandId, ...offsets }, handlers);
  const ended = channel.outcome.then(() => true);
  await channel.accepted;
  const hasEnded = await Promise.race([ended, untilQuiet(() => arrivals)]);
  if (!hasEnded) {
    channel.detach();
    ended.catch(() => undefined);
  }
  return {
    offset: request.offset + droppedBefore,
    nextOffset: request.offset + dropped + bytes,
    dropped,
    hasEnded: hasEnded || hasStreamEnded,
    bytes: Buffer.concat(chunks),
  };
}

async function untilQuiet(arrivals: () => number): Promise<false> {
  const never = new AbortController().signal;
  for (let seen = -1; seen !== arrivals(); ) {
    seen = arrivals();
    await wait(quietMs, never);
  }
  return false;
}
