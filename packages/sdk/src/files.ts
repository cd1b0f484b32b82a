import { type FileListing, type FileStat, routes } from "@dsec/contracts";
import { cancelled, DsecError } from "./errors.ts";
import type { Call, CallOptions, Transport } from "./transport.ts";

/** Whose rights a file operation uses: a name of the sandbox's /etc/passwd or `uid:gid`; the sandbox's user when absent. */
export interface FileOptions extends CallOptions {
  readonly user?: string;
}

export interface ReadOptions extends FileOptions {
  readonly offset?: number;
  readonly length?: number;
}

export interface WriteOptions extends FileOptions {
  /** Octal text; "644" when not given. */
  readonly mode?: string;
  /** Makes missing folders above; true when not given. */
  readonly makeParents?: boolean;
}

/** Bound of a transfer when the caller gives none. */
const transferMsMax = 600_000;

/** Files of one sandbox. Paths are absolute; the kernel applies the user's rights. */
export class Files {
  readonly #sandboxId: string;
  readonly #transport: Transport;

  constructor(sandboxId: string, transport: Transport) {
    this.#sandboxId = sandboxId;
    this.#transport = transport;
  }

  /** The whole content in memory. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#transport.bytes(this.#readCall(path, options));
  }

  /** The whole content as UTF-8. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** The content piece by piece, for files of any size. Ending the iteration ends the transfer. */
  async *readStream(path: string, options: ReadOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { answer, release } = await this.#transport.open(this.#readCall(path, options));
    try {
      yield* answer.chunks();
    } catch (cause) {
      if (options.signal?.aborted === true) throw cancelled("read file", options.signal);
      throw new DsecError("unavailable", "Cannot read file: the connection ended half-way", { cause });
    } finally {
      release();
    }
  }

  /** Replaces the file as a whole or not at all. A stream is sent once, anything else again when the connection fails. */
  async write(
    path: string,
    content: string | Uint8Array | ReadableStream<Uint8Array>,
    options: WriteOptions = {},
  ): Promise<FileStat> {
    const { user, mode, makeParents, ...call } = options;
    const isStream = content instanceof ReadableStream;
    return await this.#transport.json<FileStat>({
      timeoutMs: transferMsMax,
      ...call,
      ...this.#call("write file", path, { user, mode, makeParents }),
      route: routes.writeFile,
      body: isStream ? content : bytesOf(content),
      repeatable: !isStream,
    });
  }

  /** What is at the path; `file_not_found` when nothing is. */
  async stat(path: string, options: FileOptions & { readonly follow?: boolean } = {}): Promise<FileStat> {
    const { user, follow, ...call } = options;
    return await this.#transport.json<FileStat>({
      ...call,
      ...this.#call("stat file", path, { user, follow }),
      route: routes.statFile,
    });
  }

  /** The entries of one folder. */
  async list(
    path: string,
    options: FileOptions & { readonly entriesMax?: number } = {},
  ): Promise<FileListing> {
    const { user, entriesMax, ...call } = options;
    return await this.#transport.json<FileListing>({
      ...call,
      ...this.#call("list files", path, { user, entriesMax }),
      route: routes.listFiles,
    });
  }

  async remove(path: string, options: FileOptions & { readonly recursive?: boolean } = {}): Promise<void> {
    const { user, recursive, ...call } = options;
    await this.#transport.empty({
      ...call,
      ...this.#call("remove file", path, { user, recursive }),
      route: routes.removeFile,
    });
  }

  #readCall(path: string, options: ReadOptions): Call {
    const { user, offset, length, ...call } = options;
    return {
      timeoutMs: transferMsMax,
      ...call,
      ...this.#call("read file", path, { user, offset, length }),
      route: routes.readFile,
    };
  }

  #call(
    what: string,
    path: string,
    query: Call["query"],
  ): Pick<Call, "what" | "parameters" | "query" | "repeatable"> {
    return { what, parameters: { sandbox: this.#sandboxId }, query: { path, ...query }, repeatable: true };
  }
}

function bytesOf(content: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof content === "string"
    ? new TextEncoder().encode(content)
    : (content as Uint8Array<ArrayBuffer>);
}
