import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const nobody = 65_534;
const startMsMax = 30_000;

/** Directory of PostgreSQL's programs, or undefined when it is not installed. */
export function findPostgres(): string | undefined {
  return globSync("/usr/lib/postgresql/*/bin").toSorted().at(-1);
}

/** A private PostgreSQL without network, in a temporary directory that goes with it. Runs as nobody when the test is root. */
export class PostgresServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #directory: string;

  private constructor(process: ChildProcess, directory: string) {
    this.#process = process;
    this.#directory = directory;
    this.url = `postgresql://dsec@localhost/postgres?host=${directory}`;
  }

  static async start(programs: string): Promise<PostgresServer> {
    const directory = mkdtempSync(join(tmpdir(), "dsec-postgres-"));
    const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
    if (user.uid !== undefined) chownSync(directory, user.uid, user.gid);
    const data = join(directory, "data");
    const options = {
      ...user,
      cwd: directory,
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8" },
      timeout: startMsMax,
    };
    await promisify(execFile)(
      join(programs, "initdb"),
      ["-D", data, "-A", "trust", "-U", "dsec", "--no-sync"],
      options,
    );
    const server = spawn(
      join(programs, "postgres"),
      ["-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off"],
      { ...user, cwd: directory, env: options.env, stdio: ["ignore", "ignore", "pipe"] },
    );
    const started = new PostgresServer(server, directory);
    for await (const text of server.stderr.iterator({ destroyOnReturn: false })) {
      if (String(text).includes("ready to accept connections")) break;
    }
    server.stderr.resume();
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, "exit");
    // The fast shutdown: open connections are ended.
    if (this.#process.exitCode === null && this.#process.kill("SIGINT")) await ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
