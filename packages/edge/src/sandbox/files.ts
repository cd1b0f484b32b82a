import { type FileListing, type FileStat, PlatformError, type User } from "@dsec/contracts";
import type { InitClient, NativeUser } from "../chronus/init-client.ts";
import { type FileDownload, InitFiles } from "../chronus/init-files.ts";
import { asCallError } from "./chronus-errors.ts";

export interface FileContext {
  readonly user: User;
  /** The connection to init as it is now; throws when the sandbox does not run. */
  readonly init: () => InitClient;
}

/** Files of one sandbox, with the rights of a user inside. Errors are those of the file, or of the sandbox. */
export class SandboxFiles {
  readonly #context: FileContext;

  constructor(context: FileContext) {
    this.#context = context;
  }

  async read(request: {
    readonly path: string;
    readonly user: string | undefined;
    readonly offset: number;
    readonly length: number | undefined;
  }): Promise<FileDownload> {
    const { path, offset, length } = request;
    return this.#do(`read "${path}"`, async (files) =>
      files.read({ path, user: this.#user(request.user), offset, length: length ?? null }),
    );
  }

  async write(
    request: {
      readonly path: string;
      readonly user: string | undefined;
      readonly mode: string;
      readonly makeParents: boolean;
    },
    content: AsyncIterable<Uint8Array>,
  ): Promise<FileStat> {
    const { path, makeParents } = request;
    const mode = Number.parseInt(request.mode, 8);
    return this.#do(`write "${path}"`, async (files) =>
      files.write({ path, user: this.#user(request.user), mode, makeParents }, content),
    );
  }

  async list(request: {
    readonly path: string;
    readonly user: string | undefined;
    readonly entriesMax: number;
  }): Promise<FileListing> {
    const { path, entriesMax } = request;
    return this.#do(`list "${path}"`, async (files) =>
      files.list({ path, user: this.#user(request.user), entriesMax }),
    );
  }

  async stat(request: {
    readonly path: string;
    readonly user: string | undefined;
    readonly follow: boolean;
  }): Promise<FileStat> {
    const { path, follow } = request;
    return this.#do(`stat "${path}"`, async (files) =>
      files.stat({ path, user: this.#user(request.user), follow }),
    );
  }

  async remove(request: {
    readonly path: string;
    readonly user: string | undefined;
    readonly recursive: boolean;
  }): Promise<void> {
    const { path, recursive } = request;
    await this.#do(`remove "${path}"`, async (files) =>
      files.remove({ path, user: this.#user(request.user), recursive }),
    );
  }

  async #do<Result>(doing: string, operation: (files: InitFiles) => Promise<Result>): Promise<Result> {
    try {
      return await operation(new InitFiles(this.#context.init().connection));
    } catch (error) {
      throw asCallError(error, doing);
    }
  }

  #user(text: string | undefined): NativeUser {
    return text === undefined ? this.#context.user : parseUser(text);
  }
}

/** In a query a user is a name or `uid:gid`. */
function parseUser(text: string): NativeUser {
  const ids = /^(\d{1,5}):(\d{1,5})$/.exec(text);
  if (ids === null) return text;
  const [uid, gid] = [Number(ids[1]), Number(ids[2])];
  if (uid > 65_535 || gid > 65_535)
    throw new PlatformError("invalid_request", "Wrong user: ids end at 65535");
  return { uid, gid };
}
