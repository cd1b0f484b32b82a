import { type Static, Type } from "typebox";

/**
 * What control vouches for on a call to an edge, in the header `dsec-claim`: base64url of this JSON, `.`, base64url of the
 * Ed25519 signature over the first part's characters. Short-lived; the edge checks signature, time, and that the claim's project owns
 * the sandbox; an `admin` claim may touch every project.
 */
export const Claim = Type.Object(
  {
    project: Type.String({ maxLength: 64 }),
    principal: Type.String({ maxLength: 64 }),
    admin: Type.Boolean(),
    /** Milliseconds since the epoch; at most 120 s ahead. */
    expiresAtMs: Type.Integer(),
  },
  { additionalProperties: false },
);
export type Claim = Static<typeof Claim>;

export const claimHeader = "dsec-claim";
export const claimLifetimeMs = 60_000;
export const claimLifetimeMsMax = 120_000;
