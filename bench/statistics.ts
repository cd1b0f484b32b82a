/** What a series of durations looks like. Milliseconds, rounded to the microsecond. */
export interface Summary {
  readonly count: number;
  readonly min: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  readonly mean: number;
}

/** Summarises at least one value. */
export function summarise(values: readonly number[]): Summary {
  const sorted = Float64Array.from(values).sort();
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  return {
    count: sorted.length,
    min: round(quantileOfSorted(sorted, 0)),
    p50: round(quantileOfSorted(sorted, 0.5)),
    p90: round(quantileOfSorted(sorted, 0.9)),
    p99: round(quantileOfSorted(sorted, 0.99)),
    max: round(quantileOfSorted(sorted, 1)),
    mean: round(mean),
  };
}

/** The middle value; between the two middle ones for an even count. */
export function median(values: readonly number[]): number {
  return quantileOfSorted(Float64Array.from(values).sort(), 0.5);
}

/** How far rounds lie apart: (highest - lowest) / median; 0 for equal rounds. */
export function spread(values: readonly number[]): number {
  const middle = median(values);
  return middle === 0 ? 0 : round((Math.max(...values) - Math.min(...values)) / middle);
}

/** At most `countMax` of the values, evenly chosen from the sorted ones, so that quantiles stay. */
export function thin(values: readonly number[], countMax: number): number[] {
  const sorted = Array.from(Float64Array.from(values).sort(), round);
  if (sorted.length <= countMax) return sorted;
  const step = (sorted.length - 1) / (countMax - 1);
  return Array.from({ length: countMax }, (_, i) => sorted[Math.round(i * step)] ?? 0);
}

/** To three decimals. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Linear between neighbours; `share` from 0 to 1. */
function quantileOfSorted(sorted: Float64Array, share: number): number {
  if (sorted.length === 0) throw new RangeError("no value to summarise");
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? 0;
  const above = sorted[Math.ceil(place)] ?? below;
  return below + (above - below) * (place - Math.floor(place));
}
