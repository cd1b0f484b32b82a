import { randomBytes } from "node:crypto";
import { type FakeOperation, FakePeer } from "./fake-peer.ts";

type Json = Record<string, unknown>;
interface FakeCommand {
  readonly commandId: string;
  readonly actionId: string;
  readonly stdout: string;
  readonly ended: PromiseWithResolvers<Json>;
  outcome: Json | null;
}

const files: Record<string, string> = {
  "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n",
  "/bin/bash": "",
};

/**
 * An init without a kernel: commands `echo <text>` (ends at once), `exit <code>` and `hold` (runs until a signal or
 * `endCommand`). It keeps what it ran, so that a test can count executions.
 */
export class FakeInit implements AsyncDisposable {
  readonly executions: string[] = [];
  readonly acknowledged: string[] = [];
  /** What `shutdown` ends besides this peer. */
  onShutdown: () => Promise<void> = async () => this[Symbol.asyncDispose]();
  readonly #commands = new Map<string, FakeCommand>();
  #peer: FakePeer | undefined;

  static async listen(socketPath: string, sandboxId: string): Promise<FakeInit> {
    const init = new FakeInit();
    init.#peer = await FakePeer.listen(
      socketPath,
      { role: "init", sandboxId, pid: process.pid },
      (operation) => init.#handle(operation),
    );
    return init;
  }

  get peer(): FakePeer {
    if (this.#peer === undefined) throw new Error("The fake init does not listen");
    return this.#peer;
  }

  endCommand(commandId: string, end: Json): void {
    const command = [...this.#commands.values()].find((each) => each.commandId === commandId);
    if (command === undefined || command.outcome !== null) return;
    command.outcome = {
      commandId,
      actionId: command.actionId,
      exitCode: null,
      signal: null,
      cause: "exit",
      message: null,
      startedAtMs: Date.now(),
      endedAtMs: Date.now(),
      cpuMs: 1,
      peakMemoryBytes: null,
      stdout: { bytes: command.stdout.length, dropped: 0 },
      stderr: { bytes: 0, dropped: 0 },
      leftRunning: false,
      ...end,
    };
    this.peer.event({ event: "command_ended", outcome: command.outcome });
    command.ended.resolve(command.outcome);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#peer?.[Symbol.asyncDispose]();
  }

  #handle(operation: FakeOperation): void {
    const { request } = operation;
    if (request["op"] === "exec") void this.#exec(operation);
    else if (request["op"] === "attach") this.#attach(operation);
    else if (request["op"] === "commands") operation.end({ commands: this.#list() });
    else if (request["op"] === "acknowledge") {
      this.acknowledged.push(...(request["commandIds"] as string[]));
      operation.end({});
    } else if (request["op"] === "signal") {
      operation.end({});
      this.endCommand(String(request["commandId"]), { signal: request["signal"], cause: "killed" });
    } else if (request["op"] === "shutdown") {
      operation.end({});
      setImmediate(() => void this.onShutdown());
    } else this.#handleFile(operation);
  }

  async #exec(operation: FakeOperation): Promise<void> {
    const actionId = String(operation.request["actionId"]);
    let argv = operation.request["argv"] as string[] | undefined;
    if (operation.request["more"] === true) {
      await operation.inputEnded;
      argv = (JSON.parse(Buffer.concat(operation.input).toString()) as { argv: string[] }).argv;
    }
    const known = this.#commands.get(actionId);
    if (known !== undefined) {
      this.#follow(operation, known, true);
      return;
    }
    const [program, argument] = argv ?? [];
    this.executions.push(actionId);
    const command: FakeCommand = {
      commandId: `c${randomBytes(6).toString("hex")}`,
      actionId,
      stdout: program === "echo" ? `${argument}\n` : "",
      ended: Promise.withResolvers<Json>(),
      outcome: null,
    };
    this.#commands.set(actionId, command);
    this.#follow(operation, command, false);
    if (program === "echo") this.endCommand(command.commandId, { exitCode: 0 });
    if (program === "exit") this.endCommand(command.commandId, { exitCode: Number(argument) });
  }

  #attach(operation: FakeOperation): void {
    const command = [...this.#commands.values()].find(
      (each) => each.commandId === operation.request["commandId"],
    );
    if (command === undefined) operation.fail("not_found", "No such command");
    else this.#follow(operation, command, true, Number(operation.request["stdoutOffset"]));
  }

  #follow(operation: FakeOperation, command: FakeCommand, replay: boolean, offset = 0): void {
    operation.accept({ commandId: command.commandId, replay });
    const text = Buffer.from(command.stdout).subarray(offset);
    if (text.length > 0) operation.data(1, text);
    operation.cancelled.addEventListener("abort", () => operation.fail("cancelled", "Detached"));
    void command.ended.promise.then((outcome) => {
      if (operation.cancelled.aborted) return;
      operation.eof(1);
      operation.eof(2);
      operation.end(outcome);
    });
  }

  #list(): Json[] {
    return [...this.#commands.values()].map(({ commandId, actionId, outcome }) => ({
      commandId,
      actionId,
      running: outcome === null,
      startedAtMs: Date.now(),
      outcome,
    }));
  }

  #handleFile(operation: FakeOperation): void {
    const path = String(operation.request["path"]);
    const content = files[path];
    if (content === undefined) {
      operation.fail("not_found", "No such file");
      return;
    }
    const stat = {
      name: path.slice(path.lastIndexOf("/") + 1),
      path,
      kind: "file",
      sizeBytes: content.length,
      mode: 0o644,
      uid: 0,
      gid: 0,
      mtimeMs: 0,
      target: null,
    };
    if (operation.request["op"] === "file_stat") {
      operation.end({ stat });
      return;
    }
    operation.accept({ stat });
    if (content.length > 0) operation.data(1, Buffer.from(content));
    operation.eof(1);
    operation.end({});
  }
}
