import type { Resource } from '@watchtide/client';
import { isNumber } from './number';

/** The smallest and the largest value of a numeric column, and zero. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

/** Returns the range of the numbers of a column; undefined if there are none that differ from zero. */
export function rangeOf(get: (resource: Resource) => unknown, sample: readonly Resource[]): Range | undefined {
  let [low, high] = [0, 0];
  for (const resource of sample) {
    const value = get(resource);
    const number = isNumber(value) ? Number(value) : 0;
    low = Math.min(low, number);
    high = Math.max(high, number);
  }
  return low === high || !Number.isFinite(high - low) ? undefined : { low, high };
}

/** A bar from zero to a value, as whole percents of the width of a cell. */
export interface Bar {
  readonly from: number;
  readonly to: number;
}

/** Returns the bar of a value, cut at the ends of the range; undefined for what is no number. */
export function barOf(value: unknown, range: Range | undefined): Bar | undefined {
  if (!range || !isNumber(value)) return undefined;
  const at = (number: number) =>
    Math.round(100 * ((Math.min(Math.max(number, range.low), range.high) - range.low) / (range.high - range.low)));
  const [zero, end] = [at(0), at(Number(value))];
  return { from: Math.min(zero, end), to: Math.max(zero, end) };
}
