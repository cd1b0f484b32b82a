export { findLeaks, lookAtHost } from "./platform/leaks.ts";
export type { Places } from "./platform/places.ts";
export { endProcess, isRunning } from "./platform/processes.ts";
export { startPlatform } from "./platform/start-platform.ts";
export { readState, type UpState } from "./platform/state.ts";
export { stopPlatform } from "./platform/stop-platform.ts";
