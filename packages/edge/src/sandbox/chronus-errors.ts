import { type ErrorCode, PlatformError } from "@dsec/contracts";
import { OperationError, type OperationErrorCode } from "../chronus/channel.ts";
import { WireError } from "../chronus/frames.ts";

const codes: Readonly<Record<OperationErrorCode, ErrorCode>> = {
  invalid: "invalid_request",
  not_found: "file_not_found",
  denied: "file_denied",
  exists: "file_exists",
  not_directory: "file_wrong_kind",
  is_directory: "file_wrong_kind",
  not_empty: "directory_not_empty",
  disk_quota: "disk_quota",
  too_large: "payload_too_large",
  too_many: "too_many",
  busy: "file_busy",
  cancelled: "cancelled",
  deadline: "deadline",
  agent_killed: "agent_killed",
  conflict: "conflict",
  internal: "internal",
};

const reconnectMs = 500;

/**
 * What an error of chronus means to a caller. `doing` completes "Cannot …". A lost connection is `unavailable`: the edge is
 * finding out whether the sandbox lives, and the same call may be made again.
 */
export function asCallError(
  error: unknown,
  doing: string,
  notFound: ErrorCode = "file_not_found",
): PlatformError {
  if (error instanceof PlatformError) return error;
  if (error instanceof OperationError) {
    const code = error.code === "not_found" ? notFound : codes[error.code];
    const detail = code === "internal" ? "the platform failed" : error.message;
    return new PlatformError(code, `Cannot ${doing}: ${detail}`, { cause: error });
  }
  if (error instanceof WireError) {
    return new PlatformError("unavailable", `Cannot ${doing}: the sandbox is out of touch`, {
      cause: error,
      retryAfterMs: reconnectMs,
    });
  }
  return new PlatformError("internal", `Cannot ${doing}: the platform failed`, { cause: error });
}
