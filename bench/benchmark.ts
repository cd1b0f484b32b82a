import type { Contender } from "./harness.ts";
import type { Series, Skipped, Target } from "./result.ts";

export interface BenchmarkOptions {
  /** The same code with few operations. */
  readonly quick: boolean;
  readonly signal: AbortSignal;
  /** Shows where the run is; never part of the result. */
  readonly progress: (line: string) => void;
}

/** What a run found, before the facts about machine and revision are put beside it. */
export interface Measurements {
  readonly parameters: Record<string, string | number | boolean>;
  readonly series: Series[];
  readonly skipped: Skipped[];
  readonly targets: Target[];
}

export interface Benchmark {
  readonly name: string;
  /** One line for `list`. */
  readonly summary: string;
  run(options: BenchmarkOptions): Promise<Measurements>;
}

/** A peer that may not be able to run on this host; then `open` throws with the reason. */
export interface Peer {
  readonly name: string;
  open(signal: AbortSignal): Promise<Contender>;
}

/** Opens those peers that can run here, held by `held`, and says of the others why not. */
export async function openPeers(
  peers: readonly Peer[],
  held: AsyncDisposableStack,
  { signal, progress }: BenchmarkOptions,
): Promise<{ readonly contenders: Contender[]; readonly skipped: Skipped[] }> {
  const contenders: Contender[] = [];
  const skipped: Skipped[] = [];
  for (const peer of peers) {
    progress(`preparing ${peer.name}`);
    try {
      contenders.push(held.use(await peer.open(signal)));
    } catch (error) {
      signal.throwIfAborted();
      skipped.push({ what: peer.name, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return { contenders, skipped };
}
