import type { DsecClient, Sandbox } from "@dsec/sdk";

const atOnceMax = 16;

/** Stops all of them, a few at once. */
export async function stopSandboxes(sandboxes: Iterable<Sandbox>, signal: AbortSignal): Promise<void> {
  const queue = [...sandboxes];
  const work = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) await next.stop({ signal });
  };
  await Promise.all(Array.from({ length: atOnceMax }, work));
}

/** The sandboxes of the client's project that live. */
export async function findAll(client: DsecClient, signal: AbortSignal): Promise<Sandbox[]> {
  const found: Sandbox[] = [];
  for await (const sandbox of client.sandboxes.list({}, { signal })) {
    if (!["stopped", "failed"].includes(sandbox.info.state)) found.push(sandbox);
  }
  return found;
}
