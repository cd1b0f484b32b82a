/**
 * The one error of the platform. The list of codes is closed; `httpStatusOf` is the only table from code to status.
 * `message` may reach the tenant, `cause` never does.
 */
export const errorStatuses = {
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  payload_too_large: 413,
  unsupported_capability: 422,
  invalid_state: 409,
  file_not_found: 404,
  file_denied: 403,
  file_exists: 409,
  file_wrong_kind: 409,
  file_busy: 409,
  directory_not_empty: 409,
  disk_quota: 507,
  too_many: 429,
  quota_exceeded: 429,
  no_capacity: 503,
  unavailable: 503,
  node_lost: 503,
  outcome_unknown: 503,
  agent_killed: 409,
  agent_unreachable: 502,
  deadline: 504,
  cancelled: 499,
  internal: 500,
} as const;

export type ErrorCode = keyof typeof errorStatuses;

export const errorCodes = Object.keys(errorStatuses) as readonly ErrorCode[];

export function httpStatusOf(code: ErrorCode): number {
  return errorStatuses[code];
}

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorStatuses, text);
}

export interface PlatformErrorOptions {
  readonly cause?: unknown;
  /** What a caller may act on, as JSON; never secrets, never host paths. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** When present the same call may succeed after this many milliseconds. */
  readonly retryAfterMs?: number;
}

export class PlatformError extends Error {
  override readonly name = "PlatformError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: PlatformErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export function isPlatformError(value: unknown): value is PlatformError {
  return value instanceof PlatformError;
}

/** One text for an unknown sandbox and for another project's: they must not be told apart. */
export function sandboxNotFound(id: string): PlatformError {
  return new PlatformError("not_found", `Cannot find sandbox "${id.slice(0, 64)}"`);
}
