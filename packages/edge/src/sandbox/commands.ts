import { randomUUID } from "node:crypto";
import {
  type Command,
  type Exec,
  type ExecResult,
  type Outcome,
  PlatformError,
  type SandboxId,
  type SignalCommand,
  type StartCommand,
} from "@dsec/contracts";
import { digestOf, type Log } from "@dsec/kit";
import { OperationError } from "../chronus/channel.ts";
import { WireError } from "../chronus/frames.ts";
import type { CommandChannel, ExecRequest, InitClient, OutputHandlers } from "../chronus/init-client.ts";
import type { NativeOutcome } from "../chronus/operations.ts";
import type { CommandLog } from "../ledger/command-log.ts";
import type { CommandRecord } from "../ledger/records.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import type { Activity } from "./activity.ts";
import { asCallError } from "./chronus-errors.ts";
import { argvOf, environmentOf, feed, inputOf } from "./command-environment.ts";
import { getCommand, listCommands, viewOf } from "./command-views.ts";
import type { ImageFacts } from "./image-facts.ts";
import type { EndReason } from "./lifecycle.ts";
import { outcomeOf, outcomeOfSandboxEnd, unknownOutcome } from "./outcomes.ts";
import { OutputCollector } from "./output-collector.ts";

/** What a command needs to know of its sandbox. */
export interface CommandContext {
  readonly sandboxId: SandboxId;
  readonly user: StartCommand["user"] & {};
  readonly env: Readonly<Record<string, string>>;
  readonly facts: () => Promise<ImageFacts>;
  /** The connection to init as it is now; throws when the sandbox does not run. */
  readonly init: () => InitClient;
  readonly log: CommandLog;
  readonly activity: Activity;
  readonly logger: Log;
}

/** A command that the ledger knows and whose end it does not know yet. */
interface Running {
  readonly actionId: string;
  readonly requestDigest: string;
  readonly startedAtMs: number;
  readonly detached: boolean;
  commandId: string | undefined;
  /** Resolves once init has accepted the command; rejects when it never started. */
  readonly accepted: PromiseWithResolvers<string>;
  /** Resolves once the outcome is in the ledger. */
  readonly ended: PromiseWithResolvers<Outcome>;
  readonly hold: Disposable | undefined;
  /** Where init was told of it; `ledger` when an earlier edge told it; undefined before that. */
  toldOn: InitClient | "ledger" | undefined;
  isSettled: boolean;
}

interface Begun {
  readonly command: Command;
  /** Undefined for a repeat. */
  readonly channel: CommandChannel | undefined;
  readonly ended: Promise<Outcome>;
  /** Resolves once the command has all of its input, or will take no more. */
  readonly fed: Promise<void>;
}

const ignoreOutput: OutputHandlers = { output: () => undefined, gap: () => undefined };

/**
 * The commands of one sandbox. An actionId runs at most once: the intent is written before init hears of it and the outcome before
 * anybody else does. A repeat attaches to what runs or gets what was recorded.
 */
export class Commands {
  readonly #context: CommandContext;
  readonly #running = new Map<string, Running>();
  readonly #byCommandId = new Map<string, Running>();
  readonly #acknowledgements: Acknowledgements;

  constructor(context: CommandContext) {
    this.#context = context;
    this.#acknowledgements = new Acknowledgements(context);
  }

  /** A command runs; so an end by a limit is the agent's doing. */
  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /** Answers once init has accepted the command. */
  async start(request: StartCommand): Promise<Command> {
    const begun = await this.#begin(request, ignoreOutput);
    // The input goes over the same channel: a command that does not read keeps it until it ends.
    void begun.fed.then(() => begun.channel?.detach());
    await this.#keepId(begun.command);
    return begun.command;
  }

  /** Waits for the end. When the caller goes, the command runs on. */
  async exec({ outputBytesMax, ...request }: Exec, signal: AbortSignal): Promise<ExecResult> {
    const output = new OutputCollector(outputBytesMax);
    const link: { channel?: CommandChannel } = {};
    const handlers: OutputHandlers = {
      output: (stream, bytes) => {
        output.add(stream, bytes);
        link.channel?.consumed(bytes.length);
      },
      gap: (stream) => output.gap(stream),
    };
    const begun = await this.#begin(request, handlers, link);
    const channel = begun.channel ?? this.#attach(begun.command.commandId, handlers, link);
    const detach = (): void => channel?.detach();
    signal.addEventListener("abort", detach, { once: true });
    try {
      await channel?.outcome.catch(() => output.expired());
      signal.throwIfAborted();
      const outcome = begun.command.outcome ?? (await begun.ended);
      const command: Command = { ...begun.command, state: "ended", outcome };
      return { command, outcome, stdout: output.inline(1), stderr: output.inline(2) };
    } finally {
      signal.removeEventListener("abort", detach);
    }
  }

  /** In order of their start. */
  list(): Command[] {
    const { log, sandboxId } = this.#context;
    return listCommands(log, sandboxId, (actionId) => this.#running.get(actionId)?.commandId);
  }

  /** Throws `not_found`. */
  get(commandId: string): Command {
    const running = this.#byCommandId.get(commandId);
    if (running !== undefined) return this.#view(running, commandId, false);
    return getCommand(this.#context.log, this.#context.sandboxId, commandId);
  }

  /** The stored output from the offsets on; it ends with the command. Throws when the sandbox does not run. */
  follow(
    from: { readonly commandId: string; readonly stdoutOffset: number; readonly stderrOffset: number },
    output: OutputHandlers,
  ): CommandChannel {
    this.get(from.commandId);
    return this.#context.init().attach(from, output);
  }

  async signal(commandId: string, { signal, tree }: SignalCommand): Promise<void> {
    this.get(commandId);
    try {
      await this.#context.init().signal(commandId, signal, tree);
    } catch (error) {
      throw asCallError(error, "signal the command", "invalid_state");
    }
  }

  /** Resolves with the outcome once it is in the ledger; throws `not_found`. */
  async outcome(commandId: string): Promise<Outcome> {
    const running = this.#byCommandId.get(commandId);
    if (running !== undefined) return running.ended.promise;
    const { outcome } = this.get(commandId);
    if (outcome === null) throw new PlatformError("outcome_unknown", "Cannot tell how the command ended");
    return outcome;
  }

  /** Init says that a command ended. Several reports of one end count once. */
  async settle(native: NativeOutcome): Promise<void> {
    const running = this.#running.get(native.actionId);
    if (running !== undefined) await this.#settle(running, native.commandId, outcomeOf(native));
    this.#acknowledgements.add(native.commandId);
  }

  /** Compares what the ledger left open with what init knows: after a restart of the edge, and after a lost connection. */
  async reconcile(init: InitClient): Promise<void> {
    for (const record of this.#context.log.open(this.#context.sandboxId)) {
      if (!this.#running.has(record.actionId)) this.#enter(record, "ledger");
    }
    const inDoubt = [...this.#running.values()].filter(
      ({ toldOn }) => toldOn !== undefined && toldOn !== init,
    );
    const known = new Map((await init.commands()).map((command) => [command.actionId, command]));
    for (const running of inDoubt) {
      running.toldOn = init;
      const native = known.get(running.actionId);
      if (native?.outcome === null) this.#accept(running, native.commandId);
      else if (native !== undefined) await this.settle(native.outcome);
      else if (running.commandId === undefined) await this.#forget(running);
      else await this.#settle(running, running.commandId, unknownOutcome(running.startedAtMs, Date.now()));
    }
  }

  /** The sandbox has ended, and with it whatever ran. */
  async settleAll(reason: EndReason): Promise<void> {
    const atMs = Date.now();
    await Promise.all(
      [...this.#running.values()].map(async (running) => {
        const outcome =
          running.commandId === undefined
            ? unknownOutcome(running.startedAtMs, atMs)
            : outcomeOfSandboxEnd(running.startedAtMs, reason, atMs);
        await this.#settle(running, running.commandId, outcome);
      }),
    );
  }

  async #begin(
    request: StartCommand,
    output: OutputHandlers,
    link: { channel?: CommandChannel } = {},
  ): Promise<Begun> {
    const actionId = request.actionId ?? randomUUID();
    const requestDigest = digestOf({ ...request, actionId });
    const known = request.actionId === undefined ? undefined : this.#find(actionId);
    if (known !== undefined) return this.#replay(known, requestDigest);
    this.#context.init();
    const intent = { actionId, requestDigest, detached: request.detached, startedAtMs: Date.now() };
    const running = this.#enter(intent, undefined);
    try {
      const native = await this.#prepare(request, actionId);
      await this.#context.log.addIntent({ ...intent, sandboxId: this.#context.sandboxId });
      const init = this.#context.init();
      const channel = init.exec(native.request, output);
      running.toldOn = init;
      link.channel = channel;
      this.#settleAtEnd(channel);
      const { commandId } = await channel.accepted;
      this.#accept(running, commandId);
      const command = this.#view(running, commandId, false);
      return { command, channel, ended: running.ended.promise, fed: feed(channel, native.input) };
    } catch (error) {
      // Out of touch after init was told: whether it runs is found out by `reconcile`.
      if (!(error instanceof WireError) || running.toldOn === undefined) await this.#forget(running, error);
      throw asCallError(error, "run the command", "invalid_request");
    }
  }

  async #prepare(
    request: StartCommand,
    actionId: string,
  ): Promise<{ readonly request: ExecRequest; readonly input: Buffer | undefined }> {
    const facts = await this.#context.facts();
    const user = request.user ?? this.#context.user;
    const input = inputOf(request);
    return {
      input,
      request: {
        actionId,
        argv: argvOf(request, facts),
        cwd: request.cwd ?? "/",
        env: environmentOf(user, facts, this.#context.env, request.env),
        user,
        stdin: input !== undefined,
        timeoutMs: request.timeoutMs,
        noNewPrivs: request.noNewPrivs,
        endTree: request.endTree,
      },
    };
  }

  async #replay(known: Running | CommandRecord, requestDigest: string): Promise<Begun> {
    if (known.requestDigest !== requestDigest) {
      throw new PlatformError("conflict", "Cannot run the command: its actionId was used for another one");
    }
    const [channel, fed] = [undefined, Promise.resolve()];
    if ("accepted" in known) {
      const command = this.#view(known, await known.accepted.promise, true);
      return { command, channel, ended: known.ended.promise, fed };
    }
    if (known.outcome === null)
      throw new PlatformError("outcome_unknown", "Cannot tell how the command ended");
    if (known.commandId === null)
      throw new PlatformError("outcome_unknown", "Cannot tell whether the command ran");
    const command = { ...viewOf(known, known.commandId), replay: true };
    return { command, channel, ended: Promise.resolve(known.outcome), fed };
  }

  #attach(
    commandId: string,
    output: OutputHandlers,
    link: { channel?: CommandChannel },
  ): CommandChannel | undefined {
    try {
      const channel = this.#context.init().attach({ commandId, stdoutOffset: 0, stderrOffset: 0 }, output);
      link.channel = channel;
      return channel;
    } catch {
      // The sandbox has ended: its output is gone, its outcome is not.
      return undefined;
    }
  }

  #enter(
    record: Pick<CommandRecord, "actionId" | "requestDigest" | "detached" | "startedAtMs">,
    toldOn: "ledger" | undefined,
  ): Running {
    const running: Running = {
      actionId: record.actionId,
      requestDigest: record.requestDigest,
      startedAtMs: record.startedAtMs,
      detached: record.detached,
      toldOn,
      commandId: undefined,
      accepted: Promise.withResolvers<string>(),
      ended: Promise.withResolvers<Outcome>(),
      hold: record.detached ? undefined : this.#context.activity.hold(),
      isSettled: false,
    };
    running.accepted.promise.catch(() => undefined);
    running.ended.promise.catch(() => undefined);
    this.#running.set(record.actionId, running);
    return running;
  }

  #accept(running: Running, commandId: string): void {
    // Its end was reported in the same breath.
    if (running.isSettled) return;
    running.commandId = commandId;
    this.#byCommandId.set(commandId, running);
    running.accepted.resolve(commandId);
  }

  /** Who waits for the end needs no write of the id: it is written with the outcome. */
  async #keepId({ actionId, commandId }: Command): Promise<void> {
    const running = this.#running.get(actionId);
    if (running?.isSettled === true) await running.ended.promise;
    else if (running !== undefined) {
      await this.#context.log.setCommandId(this.#context.sandboxId, actionId, commandId);
    }
  }

  #find(actionId: string): Running | CommandRecord | undefined {
    return this.#running.get(actionId) ?? this.#context.log.byAction(this.#context.sandboxId, actionId);
  }

  /** The end arrives as an event and at the end of the channel: whichever is first. */
  #settleAtEnd(channel: CommandChannel): void {
    channel.outcome
      .then(async (native) => this.settle(native))
      .catch((error: unknown) => {
        const isExpected = error instanceof OperationError || error instanceof WireError;
        if (!isExpected) this.#context.logger.error({ err: error }, "cannot record the end of a command");
      });
  }

  async #settle(running: Running, commandId: string | undefined, outcome: Outcome): Promise<void> {
    if (running.isSettled) {
      await running.ended.promise;
      return;
    }
    running.isSettled = true;
    const command = { actionId: running.actionId, commandId: commandId ?? null };
    await this.#context.log.setOutcome(this.#context.sandboxId, command, outcome);
    if (commandId !== undefined) running.accepted.resolve(commandId);
    else running.accepted.reject(new PlatformError("outcome_unknown", "Cannot tell whether the command ran"));
    running.ended.resolve(outcome);
    this.#leave(running);
  }

  /** It never ran: its actionId is free again. */
  async #forget(running: Running, error?: unknown): Promise<void> {
    await this.#context.log.removeIntent(this.#context.sandboxId, running.actionId);
    const reason =
      error ?? new PlatformError("unavailable", "Cannot run the command: the sandbox was out of touch");
    running.accepted.reject(reason);
    running.ended.reject(reason);
    this.#leave(running);
  }

  #leave(running: Running): void {
    this.#running.delete(running.actionId);
    if (running.commandId !== undefined) this.#byCommandId.delete(running.commandId);
    running.hold?.[Symbol.dispose]();
  }

  #view(running: Running, commandId: string, replay: boolean): Command {
    const { actionId, startedAtMs } = running;
    return { commandId, actionId, replay, state: "running", startedAtMs, outcome: null };
  }
}
