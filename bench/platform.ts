import { DsecClient, type Sandbox } from "@dsec/sdk";

/** A sandbox of the platform that is measured; disposing stops it. */
export interface PlatformSandbox extends AsyncDisposable {
  /** Runs `true` to its end. Throws when it does not end with 0. */
  runTrue(signal: AbortSignal): Promise<void>;
}

/** The platform that is measured, through its public API. */
export interface Platform extends AsyncDisposable {
  create(signal: AbortSignal): Promise<PlatformSandbox>;
}

/** The platform that DSEC_URL and DSEC_KEY name, or that `dsec up` started on this machine. Its base layer is warm. */
export async function openPlatform(signal: AbortSignal): Promise<Platform> {
  await using held = new AsyncDisposableStack();
  const client = held.use(new DsecClient());
  const platform = {
    create: async (stop: AbortSignal) =>
      measured(await client.sandboxes.create({ cpuCores: 2 }, { signal: stop })),
  };
  await using first = await platform.create(signal);
  await first.runTrue(signal);

  const owned = held.move();
  return { ...platform, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function measured(sandbox: Sandbox): PlatformSandbox {
  return {
    async runTrue(signal) {
      const result = await sandbox.exec(["true"], { signal });
      if (!result.ok) throw new Error(`true ended with ${result.exitCode ?? result.outcome.cause}`);
    },
    [Symbol.asyncDispose]: () => sandbox.stop(),
  };
}
