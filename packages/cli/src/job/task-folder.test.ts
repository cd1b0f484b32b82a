import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { loadTasks } from "./task-folder.ts";

const signal = AbortSignal.timeout(60_000);

const toml = `
name = "one"
language = "shell"
time_limit_s = 5
[test]
command = "sh test.sh"
[repo]
author_name = "A"
author_email = "a@example.invalid"
date = 2024-01-31T12:00:00Z
message = "First"
[attempts]
b = "fail"
a = "pass"
`;

const files: Readonly<Record<string, string>> = {
  "one/task.toml": toml,
  "one/repo/test.sh": "exit 1\n",
  "one/attempts/a.sh": "echo exit 0 >test.sh\n",
  "one/attempts/b.sh": "ls\n",
};

async function folderOf(t: TestContext, content: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "dsec-tasks-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(content)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

test("loadTasks() reads tasks and attempts in order of their names", async (t) => {
  const second = Object.entries(files).map(([path, text]) => [
    path.replace("one/", "a-first/"),
    text.replace('"one"', '"a-first"'),
  ]);
  const folder = await folderOf(t, { ...files, ...Object.fromEntries(second), "README.md": "tasks" });
  const tasks = await loadTasks(folder, signal);
  assert.deepEqual(
    tasks.map((task) => task.name),
    ["a-first", "one"],
  );
  assert.equal(tasks[1]?.filesDirectory, join(folder, "one/repo"));
  assert.equal(tasks[1]?.timeLimitMs, 5_000);
  assert.deepEqual(tasks[1]?.attempts, [
    { name: "a", script: "echo exit 0 >test.sh\n", expected: "pass" },
    { name: "b", script: "ls\n", expected: "fail" },
  ]);
});

const refused: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
  ["a folder without tasks", {}, /: holds no task$/],
  ["a stray file beside the tasks", { ...files, "notes.txt": "" }, /notes\.txt: only folders of tasks/],
  ["a stray file in a task", { ...files, "one/Makefile": "" }, /one\/Makefile: does not belong to a task/],
  [
    "a name that is not the folder's",
    { ...files, "one/task.toml": toml.replace('"one"', '"two"') },
    /name must be/,
  ],
  [
    "an attempt without a verdict",
    { ...files, "one/attempts/c.sh": "" },
    /c\.sh: has no expected verdict at attempts\.c/,
  ],
  [
    "a verdict without an attempt",
    { ...files, "one/task.toml": `${toml}c = "pass"\n` },
    /c\.sh: is missing, but attempts\.c/,
  ],
  [
    "an attempt that is no script",
    { ...files, "one/attempts/c.py": "" },
    /c\.py: is not a file with a name like/,
  ],
  [
    "a huge script",
    { ...files, "one/attempts/a.sh": "#".repeat(300_000) },
    /a\.sh: is larger than 262144 bytes/,
  ],
  ["a task without task.toml", { "one/repo/x": "", "one/attempts/a.sh": "" }, /task\.toml: cannot be read/],
  ["a task without files", { "one/task.toml": toml, "one/attempts/a.sh": "" }, /repo: cannot be listed/],
];

for (const [what, content, message] of refused) {
  test(`loadTasks() refuses ${what} and names the file`, async (t) => {
    const folder = await folderOf(t, content);
    await assert.rejects(loadTasks(folder, signal), { code: "invalid_request", message });
  });
}

test("loadTasks() refuses a folder that does not exist", async (t) => {
  const folder = join(await folderOf(t, {}), "missing");
  await assert.rejects(loadTasks(folder, signal), {
    code: "invalid_request",
    message: /missing: cannot be listed/,
  });
});

test("loadTasks() refuses an attempt that is a link, so that a script comes from its task", async (t) => {
  const folder = await folderOf(t, files);
  await rm(join(folder, "one/attempts/a.sh"));
  await symlink("/etc/passwd", join(folder, "one/attempts/a.sh"));
  await assert.rejects(loadTasks(folder, signal), /a\.sh: is not a file/);
});

test("loadTasks() refuses bytes that are not UTF-8", async (t) => {
  const folder = await folderOf(t, files);
  await writeFile(join(folder, "one/attempts/a.sh"), Uint8Array.of(0x65, 0xff));
  await assert.rejects(loadTasks(folder, signal), /a\.sh: cannot be read as UTF-8 text/);
});

test("loadTasks() stops when it is aborted", async (t) => {
  const folder = await folderOf(t, files);
  await assert.rejects(loadTasks(folder, AbortSignal.abort()), { name: "AbortError" });
});
