export { EdgeConfig } from "./config.ts";
export { compareSnapshots, type Leak } from "./host/leaks/compare.ts";
export { HostSnapshot, settle, takeSnapshot } from "./host/leaks/snapshot.ts";
export { type Edge, startEdge } from "./start/edge.ts";
