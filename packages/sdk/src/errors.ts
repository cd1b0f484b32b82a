import {
  causeOfError,
  type ErrorCode,
  errorStatuses,
  type Failure,
  failureOf,
  httpStatusOf,
  isErrorCode,
} from "@dsec/contracts";
import type { HttpAnswer } from "./http.ts";

export interface DsecErrorOptions {
  readonly cause?: unknown;
  /** Status of the HTTP answer; that of the code when there was none. */
  readonly status?: number;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterMs?: number;
  readonly requestId?: string;
  readonly failure?: Failure;
}

/**
 * Every error that the SDK throws. Branch on `code`; score on `failure.maskable`, which is true when the error says
 * nothing about the agent.
 */
export class DsecError extends Error {
  override readonly name = "DsecError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  /** When present the same call may succeed after this many milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Finds the call in the platform's logs; undefined when no answer came. */
  readonly requestId: string | undefined;
  readonly failure: Failure;

  constructor(code: ErrorCode, message: string, options: DsecErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = options.status ?? httpStatusOf(code);
    this.details = options.details;
    this.retryAfterMs = options.retryAfterMs;
    this.requestId = options.requestId;
    this.failure = options.failure ?? failureOf(causeOfError(code));
  }
}

/** The error of an answer that is none of 2xx. Proxies that answer in their own way become the nearest code. */
export async function errorOfAnswer(answer: HttpAnswer): Promise<DsecError> {
  const text = await answer.text();
  const retryAfter = Number(answer.header("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter * 1000 : undefined;
  const known = errorOfBody(parseObject(text), answer.status);
  if (known !== undefined) return known;
  const message = `The platform's address answered with status ${answer.status} and no error of the platform`;
  return new DsecError(codeOfStatus(answer.status), message, {
    status: answer.status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** The error of a parsed error body; undefined when it is none. A code of a newer platform becomes the status's code. */
export function errorOfBody(
  body: Readonly<Record<string, unknown>> | undefined,
  status?: number,
): DsecError | undefined {
  if (body === undefined) return undefined;
  const { code, message, details, retryAfterMs, requestId, failure } = body;
  if (typeof code !== "string" || typeof message !== "string") return undefined;
  const known = isErrorCode(code) ? code : codeOfStatus(status ?? 500);
  return new DsecError(known, message, {
    ...(status === undefined ? {} : { status }),
    ...(isRecord(details) ? { details } : {}),
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
    ...(typeof requestId === "string" ? { requestId } : {}),
    ...(isFailure(failure) ? { failure } : {}),
  });
}

/** The error of a call whose signal aborted before it ended. */
export function cancelled(what: string, signal: AbortSignal): DsecError {
  return new DsecError("cancelled", `Cannot ${what}: cancelled by the caller`, { cause: signal.reason });
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // Not JSON: the answer of a proxy.
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFailure(value: unknown): value is Failure {
  return isRecord(value) && typeof value["fault"] === "string" && typeof value["maskable"] === "boolean";
}

const codesByStatus: ReadonlyMap<number, ErrorCode> = new Map([
  [429, "too_many"],
  [502, "unavailable"],
  [503, "unavailable"],
  [504, "deadline"],
]);

function codeOfStatus(status: number): ErrorCode {
  const special = codesByStatus.get(status);
  if (special !== undefined) return special;
  const entries = Object.entries(errorStatuses) as [ErrorCode, number][];
  return entries.find(([, of]) => of === status)?.[0] ?? (status < 500 ? "invalid_request" : "internal");
}
