import { bytes } from '../text/number';

/** The highest of some numbers; 0 if there are none. */
export const highest = (values: readonly (number | null)[]): number => values.reduce<number>((max, value) => Math.max(max, value ?? 0), 0);

/** Rounds up to a number that is easy to read: 1, 2 or 5 times a power of ten. */
export function ceiling(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5, 10].find((step) => value <= step * power) ?? 10);
}

const fastest = 0.1;
const slowest = 10_000;

/** Where a latency in ms is between 0.1 ms and 10 s, from 0 to 1: each power of ten is a fifth. */
export const heat = (ms: number): number => Math.min(1, Math.max(0, Math.log10(ms / fastest) / Math.log10(slowest / fastest)));

/** Returns the outlines of numbers as SVG path data in a box as wide as their number: one stepped area for each stretch without a gap. */
export function areas(values: readonly (number | null)[], top: number, height: number): string {
  const y = (value: number) => Math.round((height - (value / top) * height) * 100) / 100;
  let path = '';
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || value === undefined) continue;
    const before = values[i - 1];
    if (before === null || before === undefined) path += `M${i} ${height}`;
    if (value !== before) path += `V${y(value)}`;
    path += `H${i + 1}`;
    const after = values[i + 1];
    if (after === null || after === undefined) path += `V${height}Z`;
  }
  return path;
}

/** Returns the places of the labels of a time axis, in seconds since 1970: at most so many. */
export function ticks(start: number, end: number, most = 6): number[] {
  const step = [5, 10, 15, 30, 60, 120, 300, 600, 900].find((seconds) => (end - start) / seconds <= most) ?? 3600;
  const out: number[] = [];
  for (let at = Math.ceil(start / step) * step; at <= end; at += step) out.push(at);
  return out;
}

/** Formats a latency in ms: `0.42 ms`, `12 ms`, `1.5 s`. */
export function latency(ms: number): string {
  if (ms === 0) return '0 ms';
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** Formats a number of bytes for an axis: `88.3 KiB`, `176 KiB`. */
export const size = (n: number): string => bytes(Math.round(n)).replace(/^(\d{3,})\.\d/, '$1');

/** Formats a time in seconds since 1970, on a clock of 24 hours. */
export const clock = (seconds: number, withSeconds = true): string =>
  new Date(seconds * 1000).toLocaleTimeString([], {
    hourCycle: 'h23',
    hour: '2-digit',
    minute: '2-digit',
    ...(withSeconds && { second: '2-digit' }),
  });
