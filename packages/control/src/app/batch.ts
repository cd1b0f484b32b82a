import type { BatchCreate, BatchLine, Sandbox } from "@dsec/contracts";
import { randomBase32 } from "@dsec/contracts";
import { asPlatformError, errorBody } from "@dsec/kit";
import type { CreateCall, Creator } from "./create.ts";

export interface BatchOptions {
  readonly creator: Creator;
  /** Creations under way at once. */
  readonly concurrency: number;
  /** Removes a sandbox that nobody was told of. */
  readonly remove: (sandbox: Sandbox) => Promise<void>;
}

/**
 * Creates `count` sandboxes and hands out a line for each as it becomes usable or fails. When `deliver` fails or the call is aborted no
 * more are begun, and those whose line was not delivered are removed.
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
      const line = await createOne(
        index,
        batch,
        { ...call, signal: AbortSignal.timeout(createTimeoutMs) },
        options.creator,
      );
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
  await Promise.all([...undelivered].map(async (sandbox) => await options.remove(sandbox)));
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined) throw failure.reason;
}

/** A creation that has begun is finished, so that its sandbox is known and can be removed. */
const createTimeoutMs = 120_000;

async function createOne(
  index: number,
  batch: BatchCreate,
  call: Omit<CreateCall, "request" | "key">,
  creator: Creator,
): Promise<BatchLine> {
  const key = { text: `batch-${randomBase32(24)}`, fresh: true };
  try {
    return { index, sandbox: await creator.create({ ...call, request: batch.template, key }) };
  } catch (error) {
    return { index, error: errorBody(asPlatformError(error), call.requestId) };
  }
}
