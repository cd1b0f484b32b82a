import { type Static, Type } from "typebox";
import { type ErrorCode, errorCodes } from "./errors.ts";
import { Failure } from "./failures.ts";
import { Sandbox } from "./sandboxes.ts";

const strict = { additionalProperties: false } as const;

/** The one error shape on every wire. */
export const WireErrorBody = Type.Object(
  {
    code: Type.Unsafe<ErrorCode>(Type.Enum([...errorCodes])),
    message: Type.String(),
    details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    retryAfterMs: Type.Optional(Type.Integer({ minimum: 0 })),
    requestId: Type.String(),
    failure: Type.Optional(Failure),
  },
  strict,
);
export type WireErrorBody = Static<typeof WireErrorBody>;

/** One line of a batch creation's NDJSON answer. `index` counts from 0; lines come in order of completion. */
export const BatchLine = Type.Union([
  Type.Object({ index: Type.Integer({ minimum: 0 }), sandbox: Sandbox }, strict),
  Type.Object({ index: Type.Integer({ minimum: 0 }), error: WireErrorBody }, strict),
]);
export type BatchLine = Static<typeof BatchLine>;

export const headers = {
  idempotencyKey: "idempotency-key",
  /** "1" on the first sending of a key that the SDK made: no sandbox can be under it yet. */
  attempt: "dsec-attempt",
  requestId: "dsec-request-id",
  outputOffset: "dsec-offset",
  outputNextOffset: "dsec-next-offset",
  outputDropped: "dsec-dropped",
  outputEnded: "dsec-ended",
} as const;
