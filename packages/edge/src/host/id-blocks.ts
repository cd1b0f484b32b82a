import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "@dsec/contracts";
import { isSame, startTimeOf } from "./process-identity.ts";

/** User ids of one sandbox: `base` to `base + 65,535` on the host are 0 to 65,535 inside. */
export interface IdRange {
  readonly base: number;
}

/** A block of ranges that belongs to one edge of this host until it is disposed. */
export interface IdBlock extends Disposable {
  /** First id of the block. */
  readonly base: number;
  /** A range that no living sandbox has; the one returned longest ago. Throws `no_capacity` when all are out. */
  take(): IdRange;
  /** Marks the range of an adopted sandbox as taken. */
  adopt(base: number): void;
  /** Only when no process of the range is left. */
  giveBack(base: number): void;
}

const blockSize = 2 ** 28;
const rangeSize = 65_536;
const blocksMax = 15;
/** The first range of a block is left out: a mistake there would meet the block's own base. */
const rangesMax = blockSize / rangeSize - 1;

/**
 * Claims a block by a file under `runRoot`/id-blocks, so that edges on one host never overlap. A claim outlives its process, since
 * its sandboxes do, and is free once its data directory is gone; the same data directory gets its old block back.
 */
export function claimIdBlock(runRoot: string, dataDir: string): IdBlock {
  const directory = join(runRoot, "id-blocks");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const numbers = Array.from({ length: blocksMax }, (_, index) => index + 1);
  const claims = numbers.map((number) => ({ number, claim: readClaim(join(directory, String(number))) }));
  const own = claims.find(({ claim }) => claim?.dataDir === dataDir);
  if (
    own?.claim !== undefined &&
    own.claim.pid !== process.pid &&
    isSame(own.claim.pid, own.claim.startTime)
  ) {
    throw new PlatformError(
      "conflict",
      `Cannot start a second edge on "${dataDir}": process ${own.claim.pid} uses it`,
    );
  }
  for (const { number, claim } of claims) {
    // Nothing of it can be left once its directory is gone.
    if (claim !== undefined && !isSame(claim.pid, claim.startTime) && !existsSync(claim.dataDir))
      rmSync(join(directory, String(number)), { force: true });
  }
  const number = own?.number ?? numbers.find((free) => create(join(directory, String(free)), dataDir));
  if (number === undefined)
    throw new PlatformError(
      "no_capacity",
      `Cannot claim user ids: all ${blocksMax} blocks of this host are in use`,
    );
  const path = join(directory, String(number));
  writeFileSync(path, claimText(dataDir), { mode: 0o600 });
  return new ClaimedBlock(number * blockSize, path);
}

class ClaimedBlock implements IdBlock {
  readonly base: number;
  readonly #path: string;
  readonly #taken = new Set<number>();
  readonly #returned: number[] = [];
  #nextFresh = 1;

  constructor(base: number, path: string) {
    this.base = base;
    this.#path = path;
  }

  take(): IdRange {
    for (; this.#nextFresh <= rangesMax; this.#nextFresh += 1) {
      const base = this.base + this.#nextFresh * rangeSize;
      if (this.#taken.has(base)) continue;
      this.#nextFresh += 1;
      this.#taken.add(base);
      return { base };
    }
    const base = this.#returned.shift();
    if (base === undefined) {
      throw new PlatformError("no_capacity", "Cannot give user ids: every range of this node is in use", {
        retryAfterMs: 5_000,
      });
    }
    this.#taken.add(base);
    return { base };
  }

  adopt(base: number): void {
    this.#taken.add(base);
  }

  giveBack(base: number): void {
    if (!this.#taken.delete(base)) return;
    if (base < this.base + this.#nextFresh * rangeSize) this.#returned.push(base);
  }

  /** Gives the block up; only when no sandbox of it is left. */
  [Symbol.dispose](): void {
    rmSync(this.#path, { force: true });
  }
}

interface IdClaim {
  readonly pid: number;
  readonly startTime: number;
  readonly dataDir: string;
}

function readClaim(path: string): IdClaim | undefined {
  try {
    const [pid, startTime, dataDir] = readFileSync(path, "utf8").split("\n");
    return { pid: Number(pid), startTime: Number(startTime), dataDir: dataDir ?? "" };
  } catch {
    // Not claimed.
    return undefined;
  }
}

function create(path: string, dataDir: string): boolean {
  try {
    writeFileSync(path, claimText(dataDir), { mode: 0o600, flag: "wx" });
    return true;
  } catch {
    // Somebody else was first.
    return false;
  }
}

function claimText(dataDir: string): string {
  return `${process.pid}\n${startTimeOf(process.pid) ?? 0}\n${dataDir}\n`;
}
