import type { Target } from "./result.ts";
import { round } from "./statistics.ts";

/** What a benchmark promises of one metric. */
export interface TargetSpecification {
  readonly metric: string;
  readonly unit: string;
  readonly better: "lower" | "higher";
  /** Must be beaten for "done"; absent: a goal alone. */
  readonly floor?: number;
  readonly target?: number;
}

/** Judges a value; undefined means that it could not be measured, which meets neither floor nor target. */
export function judge(specification: TargetSpecification, value: number | undefined): Target {
  const { metric, unit, better } = specification;
  const [floor, target] = [specification.floor ?? null, specification.target ?? null];
  const meets = (bound: number | null): boolean => {
    if (bound === null) return true;
    if (value === undefined) return false;
    return better === "lower" ? value < bound : value >= bound;
  };
  return {
    metric,
    value: value === undefined ? null : round(value),
    unit,
    better,
    floor,
    target,
    floorMet: meets(floor),
    targetMet: meets(target),
  };
}

/** The exit code of a benchmark: every floor must be met, and there must be one. */
export function allFloorsMet(targets: readonly Target[]): boolean {
  return targets.some((target) => target.floor !== null) && targets.every((target) => target.floorMet);
}
