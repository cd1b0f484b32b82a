import {
  type Command as CommandInfo,
  type CommandList,
  type ExecResult,
  routes,
  type Sandbox as SandboxInfo,
  type SetLifetime,
} from "@dsec/contracts";
import { Command } from "./command.ts";
import { DsecError } from "./errors.ts";
import type { EventStream } from "./event-stream.ts";
import {
  type CommandLine,
  type CommandOptions,
  type CommandResult,
  commandBody,
  type ExecOptions,
  execBody,
  execCallTimeoutMs,
  resultOf,
} from "./exec.ts";
import { Files } from "./files.ts";
import type { Call, CallOptions, Transport } from "./transport.ts";

/** What a sandbox object needs of its client. */
export interface SandboxLink {
  readonly transport: Transport;
  readonly events: EventStream;
}

/** A sandbox of the platform. `await using` stops it at the end of the scope. */
export class Sandbox implements AsyncDisposable {
  readonly id: string;
  readonly files: Files;
  readonly #link: SandboxLink;
  #info: SandboxInfo;

  constructor(info: SandboxInfo, link: SandboxLink) {
    this.id = info.id;
    this.#info = info;
    this.#link = link;
    this.files = new Files(info.id, link.transport);
  }

  /** As the platform last described it to this object. */
  get info(): SandboxInfo {
    return this.#info;
  }

  /** Asks the platform how it is now. */
  async refresh(options: CallOptions = {}): Promise<SandboxInfo> {
    this.#info = await this.#link.transport.json<SandboxInfo>({
      ...options,
      ...this.#call("get sandbox"),
      route: routes.getSandbox,
    });
    return this.#info;
  }

  /**
   * Runs a command to its end. A command that fails is a result, not an error; errors are of the platform. Repeated after
   * lost connections with the same actionId, so that it never runs twice. Cancelling ends the waiting, not the command.
   */
  async exec(command: CommandLine, options: ExecOptions = {}): Promise<CommandResult> {
    const answer = await this.#link.transport.json<ExecResult>({
      ...this.#call("run command"),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      timeoutMs: execCallTimeoutMs(options),
      route: routes.exec,
      json: execBody(command, options),
    });
    return resultOf(answer);
  }

  /** Starts a command and returns at once; ends and output of all commands of a client share one connection. */
  async start(command: CommandLine, options: CommandOptions = {}): Promise<Command> {
    const info = await this.#link.transport.json<CommandInfo>({
      ...this.#call("start command"),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      route: routes.startCommand,
      json: commandBody(command, options),
    });
    return new Command(this.id, info, this.#link);
  }

  /** A command that was started before, for example by a process that ended since. */
  async command(commandId: string, options: CallOptions = {}): Promise<Command> {
    const info = await this.#link.transport.json<CommandInfo>({
      ...options,
      ...this.#call("get command"),
      parameters: { sandbox: this.id, command: commandId },
      route: routes.getCommand,
    });
    return new Command(this.id, info, this.#link);
  }

  /** The commands that the platform still knows. */
  async commands(options: CallOptions = {}): Promise<readonly CommandInfo[]> {
    const list = await this.#link.transport.json<CommandList>({
      ...options,
      ...this.#call("list commands"),
      route: routes.listCommands,
    });
    return list.items;
  }

  /** Moves the end of life to at least `ms` from now. */
  async extend(ms: number, options: CallOptions = {}): Promise<SandboxInfo> {
    return await this.setLifetime({ extendMs: ms }, options);
  }

  async setLifetime(lifetime: SetLifetime, options: CallOptions = {}): Promise<SandboxInfo> {
    this.#info = await this.#link.transport.json<SandboxInfo>({
      ...options,
      ...this.#call("set lifetime"),
      route: routes.setLifetime,
      json: lifetime,
    });
    return this.#info;
  }

  /** Resolves when the sandbox and all that it held is gone; one that is gone already is no error. */
  async stop(options: CallOptions = {}): Promise<void> {
    try {
      await this.#link.transport.empty({
        ...options,
        ...this.#call("stop sandbox"),
        route: routes.deleteSandbox,
      });
    } catch (error) {
      if (!(error instanceof DsecError && ["not_found", "gone"].includes(error.code))) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #call(what: string): Pick<Call, "what" | "parameters" | "repeatable"> {
    return { what, parameters: { sandbox: this.id }, repeatable: true };
  }
}
