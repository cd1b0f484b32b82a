import {
  type BatchLine,
  type CreateSandboxInput,
  headers,
  type ListSandboxes,
  randomBase32,
  routes,
  type Sandbox as SandboxInfo,
  type SandboxPage,
} from "@dsec/contracts";
import { cancelled, DsecError, errorOfBody } from "./errors.ts";
import { readLines } from "./lines.ts";
import { delayBeforeRetryMs, pause } from "./retry.ts";
import { Sandbox, type SandboxLink } from "./sandbox.ts";
import type { CallOptions } from "./transport.ts";

export interface CreateOptions extends CallOptions {
  /** The same key with the same input gives the same sandbox, for a day. Made for each call when not given. */
  readonly idempotencyKey?: string;
}

/** One sandbox of a batch: it is there, or why not. */
export type BatchItem =
  | { readonly index: number; readonly sandbox: Sandbox; readonly error?: undefined }
  | { readonly index: number; readonly error: DsecError; readonly sandbox?: undefined };

/** Bound of a batch when the caller gives none. */
const batchMsMax = 600_000;

/** The sandboxes of the key's project. */
export class Sandboxes {
  readonly #link: SandboxLink;

  constructor(link: SandboxLink) {
    this.#link = link;
  }

  /** Resolves when the sandbox is running. Who gets it stops it. */
  async create(input: CreateSandboxInput = {}, options: CreateOptions = {}): Promise<Sandbox> {
    const { idempotencyKey, ...call } = options;
    const info = await this.#link.transport.json<SandboxInfo>({
      ...call,
      route: routes.createSandbox,
      what: "create sandbox",
      json: input,
      headers: { [headers.idempotencyKey]: idempotencyKey ?? newIdempotencyKey() },
      // A key that was never sent before needs no look-up.
      ...(idempotencyKey === undefined ? { firstHeaders: { [headers.attempt]: "1" } } : {}),
      repeatable: true,
    });
    return new Sandbox(info, this.#link);
  }

  /**
   * Creates `count` alike and yields each as it becomes usable or fails. A lost connection is taken up again under the same
   * key, so that none is made twice. Sandboxes that were not yet yielded when the iteration ends early are the platform's to
   * end by their idle limit.
   */
  async *batch(
    batch: { readonly count: number; readonly template: CreateSandboxInput },
    options: CreateOptions = {},
  ): AsyncGenerator<BatchItem, void, undefined> {
    const { idempotencyKey = newIdempotencyKey(), timeoutMs = batchMsMax, signal } = options;
    const endsAtMs = performance.now() + timeoutMs;
    const seen = new Set<number>();
    for (let number = 1; seen.size < batch.count; number += 1) {
      if (signal?.aborted === true) throw cancelled("create batch", signal);
      if (performance.now() > endsAtMs) {
        throw new DsecError("outcome_unknown", `Cannot create batch: ${seen.size} of ${batch.count} in time`);
      }
      if (number > 1) await pause(delayBeforeRetryMs(number - 1, undefined), signal);
      const left = { timeoutMs: Math.max(1, endsAtMs - performance.now()) };
      const isNew = number === 1 && options.idempotencyKey === undefined;
      const key = { text: idempotencyKey, isNew };
      for await (const item of this.#batchOnce(batch, key, { ...options, ...left })) {
        if (seen.has(item.index)) continue;
        seen.add(item.index);
        yield item;
      }
    }
  }

  async get(id: string, options: CallOptions = {}): Promise<Sandbox> {
    const info = await this.#link.transport.json<SandboxInfo>({
      ...options,
      route: routes.getSandbox,
      what: "get sandbox",
      parameters: { sandbox: id },
      repeatable: true,
    });
    return new Sandbox(info, this.#link);
  }

  /** All that match, page by page as the iteration goes on. */
  async *list(
    filter: Partial<Omit<ListSandboxes, "cursor">> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Sandbox, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: SandboxPage = await this.#link.transport.json<SandboxPage>({
        ...options,
        route: routes.listSandboxes,
        what: "list sandboxes",
        query: { ...filter, cursor },
        repeatable: true,
      });
      for (const info of page.items) yield new Sandbox(info, this.#link);
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }

  /** Lines until the answer ends or its connection is lost. */
  async *#batchOnce(
    batch: object,
    key: { readonly text: string; readonly isNew: boolean },
    options: CallOptions,
  ): AsyncGenerator<BatchItem, void, undefined> {
    const { answer, release } = await this.#link.transport.open({
      ...options,
      route: routes.batchCreate,
      what: "create batch",
      json: batch,
      headers: { [headers.idempotencyKey]: key.text },
      ...(key.isNew ? { firstHeaders: { [headers.attempt]: "1" } } : {}),
      repeatable: true,
    });
    const lines = readLines(answer.chunks());
    try {
      for (;;) {
        let line: string;
        try {
          const next = await lines.next();
          if (next.done === true) return;
          line = next.value;
        } catch {
          return; // The connection is lost: the caller asks again under the same key.
        }
        yield this.#itemOf(JSON.parse(line) as BatchLine);
      }
    } finally {
      await lines.return();
      release();
    }
  }

  #itemOf(line: BatchLine): BatchItem {
    if ("sandbox" in line) return { index: line.index, sandbox: new Sandbox(line.sandbox, this.#link) };
    const error = errorOfBody(line.error) ?? new DsecError("internal", "Cannot create sandbox of batch");
    return { index: line.index, error };
  }
}

function newIdempotencyKey(): string {
  return `i${randomBase32(25)}`;
}
