import type { Route } from "@dsec/contracts";
import { cancelled, DsecError, errorOfAnswer } from "./errors.ts";
import { type HttpAnswer, type HttpSend, isSuccess } from "./http.ts";
import { delayBeforeRetryMs, isRetryable, pause } from "./retry.ts";
import type { Settings } from "./settings.ts";

/** What a caller may set on every call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Bound of the whole call with its retries, in milliseconds. */
  readonly timeoutMs?: number;
}

type QueryValue = string | number | boolean | readonly string[] | undefined;

/** One call of a route. */
export interface Call extends CallOptions {
  readonly route: Route;
  /** For people, behind "Cannot": "create sandbox". */
  readonly what: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly json?: unknown;
  readonly body?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with the first attempt alone. */
  readonly firstHeaders?: Readonly<Record<string, string>>;
  /** False when a second arrival would do the thing twice: then it is repeated only when nothing has arrived. */
  readonly repeatable: boolean;
}

export interface TransportOptions {
  readonly send: HttpSend;
  readonly timeoutMs: number;
}

/** An answer with the bound that still runs; `release()` ends it once the body is read or given up. */
export interface Answer {
  readonly answer: HttpAnswer;
  readonly release: () => void;
}

/** Calls routes of the platform: authentication, bounds, retries, and failover over several addresses. */
export class Transport {
  readonly #settings: Settings;
  readonly #options: TransportOptions;
  #current = 0;

  constructor(settings: Settings, options: TransportOptions) {
    this.#settings = settings;
    this.#options = options;
  }

  /** The address that answered last. */
  get url(): string {
    return this.#settings.urls[this.#current % this.#settings.urls.length] ?? "";
  }

  get key(): string {
    return this.#settings.key;
  }

  /** Moves on to the next address. */
  failOver(): void {
    this.#current = (this.#current + 1) % this.#settings.urls.length;
  }

  /** The parsed JSON of the answer. */
  async json<Result>(call: Call): Promise<Result> {
    return await this.#repeat(call, async (bound, number) => {
      const answer = await this.#send(call, bound.signal, number);
      return JSON.parse(await answer.text()) as Result;
    });
  }

  /** The whole body of the answer. */
  async bytes(call: Call): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#repeat(call, async (bound, number) => {
      const answer = await this.#send(call, bound.signal, number);
      return await answer.bytes();
    });
  }

  /** For answers without a body. */
  async empty(call: Call): Promise<void> {
    await this.#repeat(call, async (bound, number) => {
      const answer = await this.#send(call, bound.signal, number);
      await answer.discard();
    });
  }

  /** The answer as soon as its headers came; the bound covers its body too, until `release()`. */
  async open(call: Call): Promise<Answer> {
    let held: Bound | undefined;
    const answer = await this.#repeat(
      call,
      async (bound, number) => {
        held = bound;
        return await this.#send(call, bound.signal, number);
      },
      true,
    );
    return { answer, release: () => held?.release() };
  }

  async #repeat<Result>(
    call: Call,
    attempt: (bound: Bound, number: number) => Promise<Result>,
    keep = false,
  ): Promise<Result> {
    const timeoutMs = call.timeoutMs ?? this.#options.timeoutMs;
    const bound = new Bound(timeoutMs, call.signal);
    let mayHaveArrived = false;
    let kept = false;
    try {
      for (let number = 1; ; number += 1) {
        let error: DsecError;
        try {
          const result = await attempt(bound, number);
          kept = keep;
          return result;
        } catch (cause) {
          if (call.signal?.aborted === true) throw cancelled(call.what, call.signal);
          error = this.#describe(call, cause, { mayHaveArrived, isOver: bound.signal.aborted });
          mayHaveArrived ||= !hasNotArrived(cause);
        }
        const waitMs = delayBeforeRetryMs(number, error.retryAfterMs);
        const isRepeatable =
          call.repeatable || (!mayHaveArrived && error.requestId === undefined) || error.status === 429;
        if (!isRepeatable || !isRetryable(error) || bound.leftMs <= waitMs) throw error;
        await pause(waitMs, bound.signal);
      }
    } finally {
      if (!kept) bound.release();
    }
  }

  async #send(call: Call, signal: AbortSignal, number: number): Promise<HttpAnswer> {
    const json = call.json === undefined ? undefined : JSON.stringify(call.json);
    const answer = await this.#options.send({
      method: call.route.method,
      url: `${this.url}${pathOf(call)}`,
      headers: {
        authorization: `Bearer ${this.#settings.key}`,
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...(call.body === undefined ? {} : { "content-type": "application/octet-stream" }),
        ...call.headers,
        ...(number === 1 ? call.firstHeaders : {}),
      },
      body: json ?? call.body,
      signal,
    });
    if (isSuccess(answer)) return answer;
    const error = await errorOfAnswer(answer);
    if (error.requestId === undefined && error.status >= 502) this.failOver();
    throw error;
  }

  /** An error of the platform as it is; a lost connection or an elapsed bound by what it leaves unknown. */
  #describe(
    call: Call,
    cause: unknown,
    { mayHaveArrived, isOver }: { readonly mayHaveArrived: boolean; readonly isOver: boolean },
  ): DsecError {
    if (cause instanceof DsecError) return cause;
    const arrived = mayHaveArrived || !hasNotArrived(cause);
    const isUnknown = call.route.method !== "GET" && arrived;
    if (isOver) {
      const code = isUnknown ? "outcome_unknown" : "deadline";
      return new DsecError(code, `Cannot ${call.what}: no answer in time`, { cause });
    }
    const reason = arrived ? "the connection ended without an answer" : `cannot connect to ${this.url}`;
    this.failOver();
    return new DsecError(isUnknown ? "outcome_unknown" : "unavailable", `Cannot ${call.what}: ${reason}`, {
      cause,
    });
  }
}

/** One timer and one signal for a call with all of its attempts. */
class Bound {
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #endsAtMs: number;
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#controller.abort(this.#outer?.reason);

  constructor(timeoutMs: number, outer: AbortSignal | undefined) {
    this.#endsAtMs = performance.now() + timeoutMs;
    const reason = (): Error => new Error(`no answer within ${timeoutMs} ms`);
    this.#timer = setTimeout(() => this.#controller.abort(reason()), timeoutMs);
    this.#outer = outer;
    if (outer?.aborted === true) this.#onAbort();
    else outer?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leftMs(): number {
    return this.#endsAtMs - performance.now();
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#onAbort);
  }
}

const codesBeforeArrival: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Whether the error proves that no byte of the request reached the platform. Errors of the platform itself prove nothing. */
function hasNotArrived(error: unknown): boolean {
  if (error instanceof DsecError) return false;
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    if ("code" in one && codesBeforeArrival.has(one.code)) return true;
  }
  return false;
}

function pathOf(call: Call): string {
  const path = call.route.path.replace(/:(sandbox|command|key|node|project)(?=\/|$)/g, (_, name: string) =>
    encodeURIComponent(call.parameters?.[name] ?? ""),
  );
  if (call.query === undefined) return path;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value])
      query.append(name, String(one));
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}
