import { execFile } from "node:child_process";
import {
  chmod,
  copyFile,
  lutimes,
  mkdir,
  mkdtemp,
  readdir,
  readlink,
  rm,
  stat,
  symlink,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join, relative } from "node:path";
import { promisify } from "node:util";
import { PlatformError } from "@dsec/contracts";
import type { Task } from "./task-folder.ts";

const run = promisify(execFile);

/** A working copy with its git repository. The holder owns the directory; disposing removes it. */
export interface TaskRepository extends AsyncDisposable {
  /** Absolute path; the content may be made a layer. */
  readonly directory: string;
  readonly commitId: string;
}

const bounds = { entriesMax: 10_000, bytesMax: 256 * 1024 * 1024, gitTimeoutMs: 30_000 } as const;

/**
 * Makes a git repository with one commit of the task's files, in a temporary directory. The same task gives the same
 * commit id, and with the same git the same bytes, modes and times, whoever runs it. Throws `invalid_request` for
 * files that a repository cannot hold and `unavailable` when git fails.
 */
export async function makeTaskRepository(
  task: Pick<Task, "name" | "filesDirectory" | "commit">,
  signal: AbortSignal,
): Promise<TaskRepository> {
  await using held = new AsyncDisposableStack();
  const temporary = await mkdtemp(join(tmpdir(), "dsec-task-"));
  held.defer(() => rm(temporary, { recursive: true, force: true }));

  const directory = join(temporary, "repository");
  await copyFiles(task.filesDirectory, directory, signal);
  const commitId = await commitAll(task, directory, signal);
  await normalise(directory, task.commit.date);

  const owned = held.move();
  return { directory, commitId, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function commitAll(
  task: Pick<Task, "name" | "commit">,
  directory: string,
  signal: AbortSignal,
): Promise<string> {
  const { authorName, authorEmail, date, message } = task.commit;
  const moment = `${Math.floor(date.getTime() / 1000)} +0000`;
  const environment = {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    LC_ALL: "C",
    TZ: "UTC",
    HOME: dirname(directory),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: authorName,
    GIT_AUTHOR_EMAIL: authorEmail,
    GIT_AUTHOR_DATE: moment,
    GIT_COMMITTER_NAME: authorName,
    GIT_COMMITTER_EMAIL: authorEmail,
    GIT_COMMITTER_DATE: moment,
  };
  const git = async (...args: string[]): Promise<string> => {
    const options = { cwd: directory, env: environment, signal, timeout: bounds.gitTimeoutMs };
    try {
      return (await run("git", args, options)).stdout.trim();
    } catch (cause) {
      const what = `Cannot make the repository of task "${task.name}": git ${args[0]} failed`;
      throw new PlatformError("unavailable", what, { cause });
    }
  };
  await git("init", "--quiet", "--template=", "--initial-branch=main");
  await git("add", "--all");
  await git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message);
  // An index without inode numbers and times of this host: the same bytes everywhere.
  await rm(join(directory, ".git", "index"));
  await git("read-tree", "HEAD");
  return await git("rev-parse", "HEAD");
}

/** Copies files, folders and links that stay inside; refuses all else, and a `.git` at any depth. */
async function copyFiles(source: string, target: string, signal: AbortSignal): Promise<void> {
  let entries = 0;
  let bytes = 0;
  const copyFolder = async (from: string, to: string): Promise<void> => {
    await mkdir(to);
    for (const entry of await readdir(from, { withFileTypes: true })) {
      signal.throwIfAborted();
      const [path, copy] = [join(from, entry.name), join(to, entry.name)];
      entries += 1;
      if (entries > bounds.entriesMax) throw invalid(source, `holds more than ${bounds.entriesMax} entries`);
      if (entry.name === ".git") throw invalid(path, "must not exist: the repository is made from the files");
      if (entry.isDirectory()) {
        await copyFolder(path, copy);
      } else if (entry.isSymbolicLink()) {
        await symlink(await insideLink(source, path), copy);
      } else if (entry.isFile()) {
        bytes += (await stat(path)).size;
        if (bytes > bounds.bytesMax) throw invalid(source, `holds more than ${bounds.bytesMax} bytes`);
        await copyFile(path, copy);
      } else {
        throw invalid(path, "is neither a file, nor a folder, nor a link");
      }
    }
  };
  await copyFolder(source, target);
}

async function insideLink(source: string, path: string): Promise<string> {
  const link = await readlink(path);
  const inside = relative(source, join(dirname(path), link));
  if (isAbsolute(link) || inside === ".." || inside.startsWith("../")) {
    throw invalid(path, "is a link that leaves the repository");
  }
  return link;
}

/** Takes umask and clock of this host out of the tree: 755 or 644, and the time of the commit. */
async function normalise(path: string, date: Date): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) {
      await normalise(child, date);
      continue;
    }
    if (entry.isFile()) await chmod(child, ((await stat(child)).mode & 0o100) === 0 ? 0o644 : 0o755);
    await lutimes(child, date, date);
  }
  await chmod(path, 0o755);
  await lutimes(path, date, date);
}

function invalid(path: string, reason: string): PlatformError {
  return new PlatformError("invalid_request", `${path}: ${reason}`);
}
