import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { makeTaskRepository } from "./task-repository.ts";

const signal = AbortSignal.timeout(120_000);
const commit = {
  authorName: "Some Author",
  authorEmail: "author@example.invalid",
  date: new Date("2024-01-31T12:00:00Z"),
  message: "First\n\nWith a body.",
};

function filesDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "dsec-task-files-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, "bin"));
  writeFileSync(join(directory, "bin/run"), "#!/bin/sh\n", { mode: 0o700 });
  writeFileSync(join(directory, "README.md"), "text\n", { mode: 0o600 });
  symlinkSync("../README.md", join(directory, "bin/link"));
  return directory;
}

/** Every entry with its mode, time and content. */
function describeTree(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((path) => {
      const stat = lstatSync(join(root, path));
      let content = "";
      if (stat.isFile()) content = readFileSync(join(root, path), "latin1");
      if (stat.isSymbolicLink()) content = readlinkSync(join(root, path));
      const mode = stat.isSymbolicLink() ? "link" : (stat.mode & 0o7777).toString(8);
      return [path, mode, stat.mtimeMs, content].join("|");
    });
}

const git = (directory: string, ...args: string[]): string =>
  execFileSync("git", args, { cwd: directory, encoding: "utf8" }).trim();

test("makeTaskRepository() makes one commit with a clean working copy", async (t) => {
  const task = { name: "t", filesDirectory: filesDirectory(t), commit };
  await using repository = await makeTaskRepository(task, signal);
  const { directory } = repository;
  assert.equal(git(directory, "rev-list", "--count", "--all"), "1");
  assert.equal(git(directory, "rev-parse", "main"), repository.commitId);
  assert.equal(
    git(directory, "log", "-1", "--format=%an <%ae> %ct %at"),
    "Some Author <author@example.invalid> 1706702400 1706702400",
  );
  assert.equal(git(directory, "log", "-1", "--format=%B"), commit.message);
  assert.equal(git(directory, "ls-files"), "README.md\nbin/link\nbin/run");
  assert.equal(git(directory, "status", "--porcelain"), "");
  assert.equal(existsSync(join(directory, ".git/hooks")), false);
});

test("makeTaskRepository() gives the same bytes, modes and times each time", async (t) => {
  const files = filesDirectory(t);
  await using first = await makeTaskRepository({ name: "t", filesDirectory: files, commit }, signal);
  const before = describeTree(first.directory);
  chmodSync(join(files, "README.md"), 0o664);
  await using second = await makeTaskRepository({ name: "t", filesDirectory: files, commit }, signal);
  assert.equal(second.commitId, first.commitId);
  assert.deepEqual(describeTree(second.directory), before);
});

test("makeTaskRepository() does not look at the caller's git settings", async (t) => {
  const task = { name: "t", filesDirectory: filesDirectory(t), commit };
  await using plain = await makeTaskRepository(task, signal);
  const home = mkdtempSync(join(tmpdir(), "dsec-home-"));
  const settings = join(home, "settings");
  writeFileSync(settings, "[core]\nautocrlf = input\nhooksPath = /nonexistent\n[commit]\ngpgsign = true\n");
  t.after(() => rmSync(home, { recursive: true, force: true }));
  for (const [name, value] of Object.entries({ GIT_CONFIG_GLOBAL: settings, GIT_DIR: home, HOME: home })) {
    const old = process.env[name];
    process.env[name] = value;
    t.after(() => {
      if (old === undefined) delete process.env[name];
      else process.env[name] = old;
    });
  }
  await using repository = await makeTaskRepository(task, signal);
  assert.equal(repository.commitId, plain.commitId);
});

test("makeTaskRepository() removes the directory when it is given back, and twice is once", async (t) => {
  const repository = await makeTaskRepository(
    { name: "t", filesDirectory: filesDirectory(t), commit },
    signal,
  );
  await repository[Symbol.asyncDispose]();
  await repository[Symbol.asyncDispose]();
  assert.equal(existsSync(dirname(repository.directory)), false);
});

const refused: readonly (readonly [string, (directory: string) => void, RegExp])[] = [
  ["a nested .git", (d) => mkdirSync(join(d, "bin/.git")), /bin\/\.git: must not exist/],
  ["an absolute link", (d) => symlinkSync("/etc/passwd", join(d, "x")), /x: is a link that leaves/],
  ["a link that leaves", (d) => symlinkSync("../../x", join(d, "bin/x")), /bin\/x: is a link that leaves/],
  ["a pipe", (d) => execFileSync("mkfifo", [join(d, "p")]), /p: is neither a file/],
];

for (const [what, plant, message] of refused) {
  test(`makeTaskRepository() refuses ${what} and leaves nothing behind`, async (t) => {
    const files = filesDirectory(t);
    plant(files);
    const left = temporaryDirectories();
    await assert.rejects(makeTaskRepository({ name: "t", filesDirectory: files, commit }, signal), {
      message,
    });
    assert.deepEqual(
      temporaryDirectories().filter((name) => !left.includes(name)),
      [],
    );
  });
}

test("makeTaskRepository() keeps any content and any file name", async (t) => {
  const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((text) => {
    return (
      !/[/\0]/.test(text) && ![".", "..", ".git", ".gitignore", ".gitattributes"].includes(text.toLowerCase())
    );
  });
  const tree = fc.dictionary(name, fc.uint8Array({ maxLength: 200 }), { minKeys: 1, maxKeys: 5 });
  await fc.assert(
    fc.asyncProperty(tree, async (content) => {
      const files = mkdtempSync(join(tmpdir(), "dsec-task-files-"));
      t.after(() => rmSync(files, { recursive: true, force: true }));
      for (const [path, bytes] of Object.entries(content)) writeFileSync(join(files, path), bytes);
      await using repository = await makeTaskRepository({ name: "t", filesDirectory: files, commit }, signal);
      for (const [path, bytes] of Object.entries(content)) {
        assert.deepEqual(new Uint8Array(readFileSync(join(repository.directory, path))), bytes);
      }
      assert.equal(git(repository.directory, "status", "--porcelain"), "");
    }),
    { numRuns: 10 },
  );
});

function temporaryDirectories(): string[] {
  return readdirSync(tmpdir()).filter((name) => /^dsec-task-(?!files)/.test(name));
}
