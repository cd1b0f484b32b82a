import type { Channel } from "./channel.ts";
import { type ChronusConnection, connectChronus } from "./connection.ts";
import { WireError } from "./frames.ts";
import {
  type ExecAccepted,
  type NativeCommand,
  type NativeOutcome,
  parseCommandEnded,
  parseCommands,
  parseExecAccepted,
  parseOutcome,
} from "./operations.ts";

/** Above this, argv and environment follow the OPEN as data, so that the frame keeps its bound. */
const inlineRequestBytesMax = 128 * 1024;

/** A name of the sandbox's /etc/passwd, or ids. */
export type NativeUser = string | { readonly uid: number; readonly gid: number };

export interface ExecRequest {
  readonly actionId: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: NativeUser;
  /** Input follows; without it the command reads from /dev/null. */
  readonly stdin: boolean;
  readonly timeoutMs: number | null;
  readonly noNewPrivs: boolean;
  readonly endTree: boolean;
}

export type OutputStreamNumber = 1 | 2;

/** What a reader of a command's output hears. It must tell the command `consumed` for all bytes of `output`. */
export interface OutputHandlers {
  readonly output: (stream: OutputStreamNumber, bytes: Buffer) => void;
  readonly gap: (stream: OutputStreamNumber, bytes: number) => void;
  readonly eof?: (stream: OutputStreamNumber) => void;
}

/** A command that was started or attached to. */
export interface CommandChannel {
  readonly accepted: Promise<ExecAccepted>;
  /** After the last output; rejects with OperationError `cancelled` after `detach`. */
  readonly outcome: Promise<NativeOutcome>;
  consumed(bytes: number): void;
  /** Sends all input and its end; call it after `accepted`. */
  sendInput(bytes: Uint8Array): Promise<void>;
  /** Stops the output; the command runs on. */
  detach(): void;
}

export interface InitHandlers {
  readonly commandEnded: (outcome: NativeOutcome) => void;
  readonly closed: (reason: string) => void;
}

/** One connection to the init of a sandbox. Operations reject with OperationError, or WireError when it is lost. */
export class InitClient {
  readonly #connection: ChronusConnection;

  private constructor(connection: ChronusConnection) {
    this.#connection = connection;
  }

  /** Takes the sandbox over from any edge that was connected before. Refuses an init of another sandbox. */
  static async connect(
    endpoint: { readonly socketPath: string; readonly sandboxId: string },
    handlers: InitHandlers,
    signal: AbortSignal,
  ): Promise<InitClient> {
    const connection: ChronusConnection = await connectChronus(
      endpoint.socketPath,
      {
        event: (event) => {
          if (event["event"] !== "command_ended") throw new WireError("An event of init is unknown");
          handlers.commandEnded(parseCommandEnded(event).outcome);
        },
        closed: handlers.closed,
      },
      signal,
    );
    const { role, sandboxId } = connection.peer;
    if (role === "init" && sandboxId === endpoint.sandboxId) return new InitClient(connection);
    connection.close("the peer is another sandbox");
    throw new WireError("The peer is not the init of this sandbox");
  }

  get connection(): ChronusConnection {
    return this.#connection;
  }

  /** Starts a command, or attaches to the one that has its actionId. */
  exec(request: ExecRequest, output: OutputHandlers): CommandChannel {
    const { argv, env, ...rest } = request;
    if (!isLong(argv, env)) return this.#command({ op: "exec", ...request }, output);
    const command = this.#command({ op: "exec", ...rest, more: true }, output);
    void command.channel
      .write(0, Buffer.from(JSON.stringify({ argv, env }), "utf8"))
      .then(() => command.channel.endStream(0));
    return command;
  }

  /** Reads output from the offsets on; they count all bytes ever written to the stream. */
  attach(
    from: { readonly commandId: string; readonly stdoutOffset: number; readonly stderrOffset: number },
    output: OutputHandlers,
  ): CommandChannel {
    return this.#command({ op: "attach", ...from }, output);
  }

  /** All running commands and the last 1,024 that ended. */
  async commands(): Promise<readonly NativeCommand[]> {
    return parseCommands(await this.#connection.call({ op: "commands" })).commands;
  }

  /** Tells init that these outcomes are in the ledger. */
  async acknowledge(commandIds: readonly string[]): Promise<void> {
    await this.#connection.call({ op: "acknowledge", commandIds });
  }

  async signal(commandId: string, signal: number, tree: boolean): Promise<void> {
    await this.#connection.call({ op: "signal", commandId, signal, tree });
  }

  /** All commands are killed and init exits with 0. */
  async shutdown(): Promise<void> {
    await this.#connection.call({ op: "shutdown" });
  }

  close(): void {
    this.#connection.close("the edge closed the connection");
  }

  #command(request: object, output: OutputHandlers): CommandChannel & { readonly channel: Channel } {
    const accepted = Promise.withResolvers<ExecAccepted>();
    let isAccepted = false;
    const channel = this.#connection.open(request, {
      accepted: (answer) => {
        accepted.resolve(parseExecAccepted(answer));
        isAccepted = true;
      },
      data: (stream, bytes) => output.output(outputStream(stream), bytes),
      gap: (stream, bytes) => output.gap(outputStream(stream), bytes),
      eof: (stream) => output.eof?.(outputStream(stream)),
    });
    const outcome = channel.ended.then(parseOutcome);
    outcome.then(
      () => {
        if (!isAccepted) accepted.reject(new WireError("A command ended before it was accepted"));
      },
      (error: unknown) => accepted.reject(error),
    );
    accepted.promise.catch(() => undefined);
    return {
      channel,
      accepted: accepted.promise,
      outcome,
      consumed: (bytes) => channel.consumed(bytes),
      sendInput: async (bytes) => {
        await channel.write(0, bytes);
        channel.endStream(0);
      },
      detach: () => channel.cancel(),
    };
  }
}

function outputStream(stream: number): OutputStreamNumber {
  if (stream !== 1 && stream !== 2) throw new WireError(`Stream ${stream} carries no output`);
  return stream;
}

function isLong(argv: readonly string[], env: Readonly<Record<string, string>>): boolean {
  let bytes = 0;
  for (const argument of argv) bytes += 3 * argument.length;
  for (const [name, value] of Object.entries(env)) bytes += name.length + 3 * value.length;
  return bytes > inlineRequestBytesMax;
}
