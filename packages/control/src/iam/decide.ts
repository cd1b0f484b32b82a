import type { Claim, KeyRole, Route } from "@dsec/contracts";

/** Who calls: a key, and the project it belongs to. */
export interface Principal {
  readonly keyId: string;
  readonly project: string;
  readonly role: KeyRole;
}

/** Whether a principal may use a route at all; what it reaches there is bound by its project. Pure. */
export function decide(principal: Principal, auth: Route["auth"]): boolean {
  switch (auth) {
    case "none":
    case "member":
      return true;
    case "admin":
      return principal.role === "admin";
    case "node":
      // Nodes show a certificate, never a key.
      return false;
  }
}

/** What control vouches for on behalf of the principal. */
export function claimOf(principal: Principal): Omit<Claim, "expiresAtMs"> {
  return { project: principal.project, principal: principal.keyId, admin: principal.role === "admin" };
}
