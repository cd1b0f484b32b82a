import { type Static, Type } from "typebox";
import type { ErrorCode } from "./errors.ts";

/**
 * Who is to blame for an end. `none`: the program itself decided, and so does the task. Scoring code reads only
 * `maskable`: true means that the end says nothing about the agent.
 */
export const Fault = Type.Union([
  Type.Literal("none"),
  Type.Literal("policy"),
  Type.Literal("caller"),
  Type.Literal("infra"),
  Type.Literal("verifier"),
]);
export type Fault = Static<typeof Fault>;

/** Every cause with the fault that it implies. */
export const causeFaults = {
  exit: "none",
  signal: "none",
  start_failed: "none",
  oom: "policy",
  timeout: "policy",
  silence: "policy",
  output_limit: "policy",
  disk_quota: "policy",
  pids_limit: "policy",
  agent_killed: "policy",
  cancelled: "caller",
  lease_expired: "caller",
  idle_expired: "caller",
  lifetime_expired: "caller",
  node_lost: "infra",
  image: "infra",
  capacity: "infra",
  agent_unreachable: "infra",
  internal: "infra",
  outcome_unknown: "infra",
  verifier_failed: "verifier",
} as const satisfies Record<string, Fault>;

export type Cause = keyof typeof causeFaults;

export const Cause = Type.Unsafe<Cause>(Type.Enum(Object.keys(causeFaults)));

export const Failure = Type.Object(
  {
    fault: Fault,
    cause: Cause,
    maskable: Type.Boolean(),
    /** The sandbox could have brought this end about itself; evidence reports count these. */
    agentCouldCause: Type.Boolean(),
  },
  { additionalProperties: false },
);
export type Failure = Static<typeof Failure>;

/**
 * The failure of a cause. `whileCommandRan`: a lifetime or idle limit that ends a sandbox while one of the agent's
 * commands runs is policy, since an agent could stall to mask itself.
 */
export function failureOf(cause: Cause, options: { readonly whileCommandRan?: boolean } = {}): Failure {
  const limitWhileBusy =
    options.whileCommandRan === true && (cause === "idle_expired" || cause === "lifetime_expired");
  const fault: Fault = limitWhileBusy ? "policy" : causeFaults[cause];
  const maskable = fault === "caller" || fault === "infra" || fault === "verifier";
  const agentCouldCause = fault === "policy" || fault === "none" || cause === "agent_unreachable";
  return { fault, cause, maskable, agentCouldCause };
}

/** The cause that an error of the platform stands for, when a call failed before an outcome existed. */
export function causeOfError(code: ErrorCode): Cause {
  switch (code) {
    case "node_lost":
      return "node_lost";
    case "no_capacity":
    case "quota_exceeded":
    case "too_many":
      return "capacity";
    case "outcome_unknown":
      return "outcome_unknown";
    case "agent_unreachable":
      return "agent_unreachable";
    case "agent_killed":
      return "agent_killed";
    case "disk_quota":
      return "disk_quota";
    case "cancelled":
      return "cancelled";
    default:
      return "internal";
  }
}
