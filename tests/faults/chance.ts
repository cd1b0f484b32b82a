import { randomInt } from "node:crypto";
import type { TestContext } from "node:test";

/** Numbers that a seed decides. */
export interface Chance {
  /** A whole number of at least `min` and below `max`. */
  below(min: number, max: number): number;
}

/** Chance from the given seed, else from DSEC_SEED, else from a new one. It is printed, so that a run can be repeated. */
export function chanceOf(t: TestContext, given: string | undefined = process.env["DSEC_SEED"]): Chance {
  const seed = Number(given ?? randomInt(2 ** 31));
  t.diagnostic(`seed ${seed}`);
  let state = seed >>> 0;
  const next = (): number => {
    // Mulberry32.
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (min, max) => min + Math.floor(next() * (max - min)) };
}
