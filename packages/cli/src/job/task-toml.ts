import { PlatformError } from "@dsec/contracts";
import { parse, TomlDate, TomlError, type TomlTable } from "smol-toml";

/** What the test command is expected to say after an attempt. */
export type Verdict = "pass" | "fail";

/** The one commit of a task's repository. */
export interface TaskCommit {
  readonly authorName: string;
  readonly authorEmail: string;
  readonly date: Date;
  readonly message: string;
}

/** The content of a `task.toml`, before the folder around it is looked at. */
export interface TaskSettings {
  readonly name: string;
  readonly language: string;
  /** Given to `sh -c` in the working copy; its exit code is the verdict. */
  readonly testCommand: string;
  /** Bound of the attempt, and of the test command, each for itself. */
  readonly timeLimitMs: number;
  readonly commit: TaskCommit;
  /** Expected verdict by name of attempt. */
  readonly expected: ReadonlyMap<string, Verdict>;
}

/** Names of tasks, languages aside, and of attempts: safe in paths, labels and reports. */
export const taskNamePattern: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/;

const bounds = {
  textBytesMax: 64 * 1024,
  commandLengthMax: 16 * 1024,
  timeLimitSecondsMax: 3_600,
  attemptsMax: 64,
} as const;

const languagePattern = /^[a-z0-9+#.-]{1,24}$/;
// Angle brackets, line ends and NUL would change the shape of the commit.
const authorPattern = /^[^<>\p{Cc}]{1,100}$/u;
const messagePattern = /^[^\0]{1,4000}$/;

/** Parses a `task.toml`. Throws `invalid_request` that names the file and the key; unknown keys are refused. */
export function parseTaskToml(text: string, file: string): TaskSettings {
  if (Buffer.byteLength(text) > bounds.textBytesMax) {
    throw new PlatformError("invalid_request", `${file}: larger than ${bounds.textBytesMax} bytes`);
  }
  const root = new TableReader(parseTable(text, file), file, "");
  const test = root.table("test");
  const repo = root.table("repo");
  const settings: TaskSettings = {
    name: root.text("name", taskNamePattern),
    language: root.text("language", languagePattern),
    testCommand: test.command("command"),
    timeLimitMs: Math.round(root.seconds("time_limit_s") * 1000),
    commit: {
      authorName: repo.text("author_name", authorPattern),
      authorEmail: repo.text("author_email", authorPattern),
      date: repo.date("date"),
      message: repo.text("message", messagePattern),
    },
    expected: root.table("attempts").verdicts(),
  };
  for (const reader of [root, test, repo]) reader.refuseUnknownKeys();
  return settings;
}

function parseTable(text: string, file: string): TomlTable {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const place = `${file}:${cause.line}:${cause.column}`;
    throw new PlatformError("invalid_request", `${place}: not TOML`, { cause });
  }
}

/** Reads one table key by key and remembers what was asked for, so that anything else can be refused. */
class TableReader {
  readonly #table: TomlTable;
  readonly #file: string;
  readonly #prefix: string;
  readonly #known = new Set<string>();

  constructor(table: TomlTable, file: string, prefix: string) {
    this.#table = table;
    this.#file = file;
    this.#prefix = prefix;
  }

  table(key: string): TableReader {
    const value = this.#take(key);
    if (!isTable(value)) this.#refuse(key, "must be a table");
    return new TableReader(value, this.#file, `${this.#prefix}${key}.`);
  }

  text(key: string, pattern: RegExp): string {
    const value = this.#take(key);
    if (typeof value !== "string" || !pattern.test(value)) this.#refuse(key, `must be text like ${pattern}`);
    return value;
  }

  command(key: string): string {
    const value = this.#take(key);
    const wanted = `must be a shell command of at most ${bounds.commandLengthMax} characters`;
    if (typeof value !== "string" || value.trim() === "" || value.includes("\0")) this.#refuse(key, wanted);
    if (value.length > bounds.commandLengthMax) this.#refuse(key, wanted);
    return value;
  }

  seconds(key: string): number {
    const value = this.#take(key);
    const max = bounds.timeLimitSecondsMax;
    const fits = typeof value === "number" && value >= 1 && value <= max;
    if (!fits) this.#refuse(key, `must be a number of seconds, 1 to ${max}`);
    return value;
  }

  date(key: string): Date {
    const value = this.#take(key);
    const isMoment = value instanceof TomlDate && value.isDateTime() && !value.isLocal();
    if (!isMoment || value.getTime() < 0) {
      this.#refuse(key, "must be a date with time and zone after 1970, as 2024-01-31T12:00:00Z");
    }
    return new Date(value.getTime());
  }

  verdicts(): ReadonlyMap<string, Verdict> {
    const verdicts = new Map<string, Verdict>();
    for (const name of Object.keys(this.#table)) {
      const value = this.#take(name);
      if (!taskNamePattern.test(name)) this.#refuse(name, `must have a name like ${taskNamePattern}`);
      if (value !== "pass" && value !== "fail") this.#refuse(name, 'must be "pass" or "fail"');
      verdicts.set(name, value);
    }
    if (verdicts.size === 0 || verdicts.size > bounds.attemptsMax) {
      const place = `${this.#file}: ${this.#prefix.slice(0, -1)}`;
      throw new PlatformError("invalid_request", `${place}: must name 1 to ${bounds.attemptsMax} attempts`);
    }
    return verdicts;
  }

  refuseUnknownKeys(): void {
    const unknown = Object.keys(this.#table).find((key) => !this.#known.has(key));
    if (unknown !== undefined) this.#refuse(unknown, "is not a known key");
  }

  #take(key: string): unknown {
    this.#known.add(key);
    if (!Object.hasOwn(this.#table, key)) this.#refuse(key, "is missing");
    return this.#table[key];
  }

  #refuse(key: string, reason: string): never {
    throw new PlatformError("invalid_request", `${this.#file}: ${this.#prefix}${key} ${reason}`);
  }
}

function isTable(value: unknown): value is TomlTable {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof TomlDate);
}
