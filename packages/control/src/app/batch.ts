import { createHash } from "node:crypto";
import type { BatchCreate, BatchLine, Sandbox } from "@dsec/contracts";
import { randomBase32 } from "@dsec/contracts";
import { asPlatformError, errorBody } from "@dsec/kit";
import type { CreateCall, Creator } from "./create.ts";

export interface BatchOptions {
  readonly creator: Creator;
  /** Creations under way at once. */
  readonly concurrency: number;
  /**
   * The caller's key. Each sandbox gets one that is derived from it, so that the same batch again answers the same sandboxes; those that nobody
   * was told of stay for that, until their idle time is over.
   */
  readonly key: CreateCall["key"] | undefined;
  /** Removes a sandbox that nobody was told of, of a batch without a key. */
  readonly remove: (sandbox: Sandbox) => Promise<void>;
}

/**
 * Creates `count` sandboxes and hands out a line for each as it becomes usable or fails. When `deliver` fails or the call is aborted no
 * more are begun, and those whose line was not delivered are removed unless the batch has a key.
 */
export async function createBatch(
  batch: BatchCreate,
  call: Omit<CreateCall, "request" | "key">,
  options: BatchOptions,
  deliver: (line: BatchLine) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([call.signal, failed.signal]);
  const undelivered = new Set<Sandbox>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < batch.count && !signal.aborted) {
      const index = next;
      next += 1;
      const one = {
        ...call,
        request: batch.template,
        key: keyOfOne(index, options.key),
        signal: AbortSignal.timeout(createTimeoutMs),
      };
      const line = await createOne(index, one, options.creator);
      if ("sandbox" in line) undelivered.add(line.sandbox);
      signal.throwIfAborted();
      await deliver(line);
      if ("sandbox" in line) undelivered.delete(line.sandbox);
    }
  };
  const workers = Array.from({ length: Math.min(options.concurrency, batch.count) }, async () => {
    try {
      await worker();
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  });
  const results = await Promise.allSettled(workers);
  if (options.key === undefined)
    await Promise.all([...undelivered].map(async (sandbox) => await options.remove(sandbox)));
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined) throw failure.reason;
}

/** A creation that has begun is finished, so that its sandbox is known and can be removed. */
const createTimeoutMs = 120_000;

async function createOne(index: number, call: CreateCall, creator: Creator): Promise<BatchLine> {
  try {
    return { index, sandbox: await creator.create(call) };
  } catch (error) {
    return { index, error: errorBody(asPlatformError(error), call.requestId) };
  }
}

/** Short enough for any key of a caller, and never one that a caller would choose. */
function keyOfOne(index: number, batchKey: BatchOptions["key"]): CreateCall["key"] {
  if (batchKey === undefined) return { text: `batch-${randomBase32(24)}`, fresh: true };
  const digest = createHash("sha256").update(batchKey.text).digest("hex");
  return { text: `batch-${digest}-${index}`, fresh: batchKey.fresh };
}
