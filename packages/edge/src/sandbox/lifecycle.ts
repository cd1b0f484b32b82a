import { type Failure, PlatformError } from "@dsec/contracts";

/** Why a sandbox ends: null when its owner simply stopped it. */
export interface EndReason {
  readonly end: Failure | null;
  readonly message: string | null;
}

/** The states of a sandbox with what is known in each. `paused` is entered once pausing exists. */
export type Lifecycle =
  | { readonly kind: "creating" }
  | { readonly kind: "running" }
  | { readonly kind: "paused" }
  | { readonly kind: "stopping"; readonly reason: EndReason }
  | { readonly kind: "stopped"; readonly reason: EndReason; readonly endedAtMs: number }
  | { readonly kind: "failed"; readonly reason: EndReason; readonly endedAtMs: number };

export type LifecycleEvent =
  | { readonly kind: "created" }
  | { readonly kind: "creationFailed"; readonly reason: EndReason; readonly atMs: number }
  | { readonly kind: "endBegan"; readonly reason: EndReason }
  /** Everything was given back. */
  | { readonly kind: "gone"; readonly atMs: number };

/** The state after an event; throws `invalid_state` when the event cannot happen in this state. */
export function advance(state: Lifecycle, event: LifecycleEvent): Lifecycle {
  switch (event.kind) {
    case "created":
      if (state.kind === "creating") return { kind: "running" };
      break;
    case "creationFailed":
      if (state.kind === "creating") return { kind: "failed", reason: event.reason, endedAtMs: event.atMs };
      break;
    case "endBegan":
      if (state.kind === "running" || state.kind === "paused")
        return { kind: "stopping", reason: event.reason };
      break;
    case "gone":
      if (state.kind === "stopping")
        return { kind: kindAfter(state.reason), reason: state.reason, endedAtMs: event.atMs };
      break;
    default:
      return event satisfies never;
  }
  throw new PlatformError("invalid_state", `Cannot do that while the sandbox is ${state.kind}`);
}

/** An end that the owner or a limit of the sandbox wanted is a stop; any other is a failure. */
function kindAfter({ end }: EndReason): "stopped" | "failed" {
  const isWanted = end === null || ["idle_expired", "lifetime_expired", "cancelled"].includes(end.cause);
  return isWanted ? "stopped" : "failed";
}
