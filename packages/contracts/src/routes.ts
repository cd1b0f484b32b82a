/**
 * Every route of the public API. Those marked `edge` exist with the same path and body at the edge too: control authorizes and forwards them.
 * `:sandbox`, `:command`, … are path parameters.
 */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE" | "PATCH";
  readonly path: string;
  /** Served by the edge that owns the sandbox. */
  readonly edge: boolean;
  readonly auth: "none" | "member" | "admin" | "node";
}

function route(method: Route["method"], path: string, auth: Route["auth"], edge = false): Route {
  return { method, path, auth, edge };
}

export const routes = {
  createSandbox: route("POST", "/v1/sandboxes", "member", true),
  batchCreate: route("POST", "/v1/sandboxes:batch", "member"),
  listSandboxes: route("GET", "/v1/sandboxes", "member", true),
  getSandbox: route("GET", "/v1/sandboxes/:sandbox", "member", true),
  deleteSandbox: route("DELETE", "/v1/sandboxes/:sandbox", "member", true),
  setLifetime: route("POST", "/v1/sandboxes/:sandbox/lifetime", "member", true),
  startCommand: route("POST", "/v1/sandboxes/:sandbox/commands", "member", true),
  listCommands: route("GET", "/v1/sandboxes/:sandbox/commands", "member", true),
  getCommand: route("GET", "/v1/sandboxes/:sandbox/commands/:command", "member", true),
  readOutput: route("GET", "/v1/sandboxes/:sandbox/commands/:command/output", "member", true),
  signalCommand: route("POST", "/v1/sandboxes/:sandbox/commands/:command/signal", "member", true),
  exec: route("POST", "/v1/sandboxes/:sandbox/exec", "member", true),
  readFile: route("GET", "/v1/sandboxes/:sandbox/files", "member", true),
  writeFile: route("PUT", "/v1/sandboxes/:sandbox/files", "member", true),
  removeFile: route("DELETE", "/v1/sandboxes/:sandbox/files", "member", true),
  statFile: route("GET", "/v1/sandboxes/:sandbox/files/stat", "member", true),
  listFiles: route("GET", "/v1/sandboxes/:sandbox/files/list", "member", true),
  eventStream: route("GET", "/v1/events/stream", "member", true),
  capabilities: route("GET", "/v1/capabilities", "member"),
  listLayers: route("GET", "/v1/layers", "member"),
  /** Done by every healthy edge, since a directory is of one machine or of a shared file system. */
  importLayer: route("POST", "/v1/layers:import", "admin"),
  listProjects: route("GET", "/v1/projects", "admin"),
  createProject: route("POST", "/v1/projects", "admin"),
  listKeys: route("GET", "/v1/keys", "admin"),
  createKey: route("POST", "/v1/keys", "admin"),
  revokeKey: route("DELETE", "/v1/keys/:key", "admin"),
  listNodes: route("GET", "/v1/nodes", "admin"),
  createJoinToken: route("POST", "/v1/join-tokens", "admin"),
  joinNode: route("POST", "/v1/nodes:join", "none"),
  heartbeat: route("POST", "/v1/nodes/:node/heartbeat", "node"),
  health: route("GET", "/healthz", "none"),
  ready: route("GET", "/readyz", "none"),
  metrics: route("GET", "/metrics", "none"),
  openapi: route("GET", "/openapi.json", "none"),
} as const satisfies Record<string, Route>;

/** Routes of the edge alone, for control: `GET /v1/idempotency/:key` → IdempotencyRecord or not_found. */
export const edgeRoutes = {
  lookupIdempotency: route("GET", "/v1/idempotency/:key", "member", true),
  importLayer: route("POST", "/v1/layers:import", "admin", true),
  listLayers: route("GET", "/v1/layers", "member", true),
} as const satisfies Record<string, Route>;
