import { chmod, mkdtemp, rename, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DsecClient } from "@dsec/sdk";
import { workspacePath } from "./attempt.ts";
import type { Task } from "./task-folder.ts";
import { makeTaskRepository } from "./task-repository.ts";

/** The workspace layer of each task by the task's name; those that are there already are not made again. */
export async function ensureWorkspaces(
  client: DsecClient,
  tasks: readonly Task[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const known = new Set((await client.layers.list({ signal })).map((layer) => layer.name));
  const layers = new Map<string, string>();
  for (const task of tasks) layers.set(task.name, await ensureWorkspace(client, { task, known }, signal));
  return layers;
}

async function ensureWorkspace(
  client: DsecClient,
  { task, known }: { readonly task: Task; readonly known: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<string> {
  await using repository = await makeTaskRepository(task, signal);
  const name = `job/${task.name}@${repository.commitId}`;
  if (known.has(name)) return name;
  const directory = await mkdtemp(join(tmpdir(), "dsec-workspace-"));
  try {
    // The layer's own root becomes that of the sandbox: everybody may enter it, and equal content stays equal.
    await rename(repository.directory, join(directory, workspacePath));
    await chmod(directory, 0o755);
    await utimes(directory, task.commit.date, task.commit.date);
    await client.layers.import({ kind: "workspace", name, source: { directory } }, { signal });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return name;
}
