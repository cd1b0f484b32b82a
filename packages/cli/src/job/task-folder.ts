import { type Dirent } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { PlatformError } from "@dsec/contracts";
import { parseTaskToml, type TaskCommit, taskNamePattern, type Verdict } from "./task-toml.ts";

/** A scripted agent: what it does in the working copy, and what must come of it. */
export interface TaskAttempt {
  readonly name: string;
  /** Text for `bash`, run in the working copy. */
  readonly script: string;
  readonly expected: Verdict;
}

/** A small repository with a failing test, and attempts at it. */
export interface Task {
  readonly name: string;
  readonly language: string;
  /** Given to `sh -c` in the working copy; exit code 0 is a pass, anything else is none. */
  readonly testCommand: string;
  /** Bound of the attempt, and of the test command, each for itself. */
  readonly timeLimitMs: number;
  /** Absolute path of the files that `makeTaskRepository()` commits. */
  readonly filesDirectory: string;
  readonly commit: TaskCommit;
  /** In order of their names. */
  readonly attempts: readonly TaskAttempt[];
}

const bounds = { tasksMax: 256, scriptBytesMax: 256 * 1024, textBytesMax: 64 * 1024 } as const;

/**
 * Reads every task of a folder, in order of their names: each sub-folder is one. Throws `invalid_request` that names
 * the file and, inside a `task.toml`, the key.
 */
export async function loadTasks(folder: string, signal: AbortSignal): Promise<readonly Task[]> {
  const root = resolve(folder);
  const entries = (await list(root)).filter((entry) => !entry.name.startsWith("."));
  const stray = entries.find((entry) => !entry.isDirectory() && entry.name !== "README.md");
  if (stray !== undefined) throw invalid(join(root, stray.name), "only folders of tasks may be here");

  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  if (names.length === 0) throw invalid(root, "holds no task");
  if (names.length > bounds.tasksMax) throw invalid(root, `holds more than ${bounds.tasksMax} tasks`);
  const tasks: Task[] = [];
  for (const name of names.toSorted()) {
    signal.throwIfAborted();
    tasks.push(await loadTask(join(root, name)));
  }
  return tasks;
}

async function loadTask(folder: string): Promise<Task> {
  const entries = await list(folder);
  const known = new Set(["task.toml", "repo", "attempts", "README.md"]);
  const stray = entries.find((entry) => !known.has(entry.name));
  if (stray !== undefined) throw invalid(join(folder, stray.name), "does not belong to a task");

  const file = join(folder, "task.toml");
  const { expected, ...settings } = parseTaskToml(await readText(file, bounds.textBytesMax), file);
  if (settings.name !== basename(folder)) throw invalid(file, `name must be that of its folder`);

  const filesDirectory = join(folder, "repo");
  const repository = await list(filesDirectory);
  if (repository.length === 0) throw invalid(filesDirectory, "holds no file");
  return { ...settings, filesDirectory, attempts: await loadAttempts(join(folder, "attempts"), expected) };
}

async function loadAttempts(
  folder: string,
  expected: ReadonlyMap<string, Verdict>,
): Promise<readonly TaskAttempt[]> {
  const found = new Set((await list(folder)).map((entry) => attemptName(folder, entry)));
  const unplanned = [...found].find((name) => !expected.has(name));
  if (unplanned !== undefined) {
    throw invalid(
      join(folder, `${unplanned}.sh`),
      `has no expected verdict at attempts.${unplanned} in task.toml`,
    );
  }
  const attempts: TaskAttempt[] = [];
  for (const [name, verdict] of [...expected].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const path = join(folder, `${name}.sh`);
    if (!found.has(name)) throw invalid(path, `is missing, but attempts.${name} in task.toml names it`);
    attempts.push({ name, script: await readText(path, bounds.scriptBytesMax), expected: verdict });
  }
  return attempts;
}

function attemptName(folder: string, entry: Dirent): string {
  const name = entry.name.endsWith(".sh") ? entry.name.slice(0, -".sh".length) : "";
  if (entry.isFile() && taskNamePattern.test(name)) return name;
  throw invalid(join(folder, entry.name), `is not a file with a name like ${taskNamePattern} before ".sh"`);
}

async function list(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (cause) {
    throw new PlatformError("invalid_request", `${folder}: cannot be listed`, { cause });
  }
}

async function readText(path: string, bytesMax: number): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > bytesMax) throw invalid(path, `is larger than ${bytesMax} bytes`);
    return new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path));
  } catch (cause) {
    if (cause instanceof PlatformError) throw cause;
    throw new PlatformError("invalid_request", `${path}: cannot be read as UTF-8 text`, { cause });
  }
}

function invalid(path: string, reason: string): PlatformError {
  return new PlatformError("invalid_request", `${path}: ${reason}`);
}
