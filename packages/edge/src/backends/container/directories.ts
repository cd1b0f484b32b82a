import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isSandboxId, type SandboxId } from "@dsec/contracts";
import { createUpper, removeUpper } from "../../host/upper.ts";

/** Paths of one sandbox on the host. */
export interface SandboxPaths {
  readonly root: string;
  readonly upper: string;
  readonly work: string;
  readonly output: string;
  readonly socket: string;
}

/** The files of the node's sandboxes: data below `dataDirectory`/sandboxes, sockets below `runDirectory`/sb. */
export class Directories {
  readonly #data: string;
  readonly #sockets: string;

  constructor(dataDirectory: string, runDirectory: string) {
    this.#data = join(dataDirectory, "sandboxes");
    this.#sockets = join(runDirectory, "sb");
    mkdirSync(this.#data, { recursive: true, mode: 0o700 });
    mkdirSync(this.#sockets, { recursive: true, mode: 0o700 });
  }

  /** The directory that holds one directory for each sandbox. */
  get root(): string {
    return this.#data;
  }

  paths(id: SandboxId): SandboxPaths {
    const root = join(this.#data, id);
    return {
      root,
      upper: join(root, "upper"),
      work: join(root, "work"),
      output: join(root, "output"),
      socket: join(this.#sockets, `${id}.sock`),
    };
  }

  /** Makes the directories of a sandbox. What a failure leaves is removed by `remove`. */
  create(id: SandboxId, idBase: number): SandboxPaths {
    const paths = this.paths(id);
    mkdirSync(paths.root, { mode: 0o711 });
    chmodSync(paths.root, 0o711);
    createUpper(paths.root, idBase);
    mkdirSync(paths.output, { mode: 0o700 });
    return paths;
  }

  /** Idempotent. All processes of the sandbox must be gone. */
  async remove(id: SandboxId): Promise<void> {
    const paths = this.paths(id);
    rmSync(paths.socket, { force: true });
    if (existsSync(paths.root)) await removeUpper(paths.root);
  }

  /** Every sandbox that has a directory or a socket. */
  list(): SandboxId[] {
    const directories = readdirSync(this.#data);
    const sockets = readdirSync(this.#sockets).map((name) => name.replace(/\.sock$/, ""));
    return [...new Set([...directories, ...sockets])].filter(isSandboxId);
  }
}
