export { ControlConfig } from "./config.ts";
export { type Control, startControl } from "./start.ts";
