/** One HTTP exchange, whichever way the runtime does it. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;
  /** Ends the exchange, its answer's body included. */
  readonly signal: AbortSignal;
}

/** An answer whose headers have come. Its body is taken once, in one of the ways, or discarded. */
export interface HttpAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  chunks(): AsyncIterable<Uint8Array>;
  discard(): Promise<void>;
}

/** Rejects when no answer comes, with a `code` of the system where the runtime gives one. */
export type HttpSend = (request: HttpRequest) => Promise<HttpAnswer>;

export function isSuccess(answer: HttpAnswer): boolean {
  return answer.status >= 200 && answer.status < 300;
}
