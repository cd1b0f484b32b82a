export type { CreateSandboxInput, ErrorCode, Failure, FileStat, Outcome } from "@dsec/contracts";
export { DsecClient, type DsecClientOptions } from "./client.ts";
export { Command, type CommandOutput } from "./command.ts";
export { DsecError } from "./errors.ts";
export type { CommandLine, CommandOptions, CommandResult, ExecOptions } from "./exec.ts";
export { Sandbox } from "./sandbox.ts";
export type { BatchItem, CreateOptions } from "./sandboxes.ts";
export type { CallOptions } from "./transport.ts";
