export { type CliReport, runDsec } from "./dsec.ts";
export { type PlatformOptions, startPlatform, type TestPlatform } from "./platform.ts";
export { reasonToSkip } from "./skip.ts";
