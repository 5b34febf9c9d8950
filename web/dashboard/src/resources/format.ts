import { duration } from '../text/duration';
import { bytes } from '../text/number';
import { isNumber } from './number';

/** The unit of a number, by the end of its name. */
export type Unit = 'bytes' | 'ms' | 'seconds' | 'percent';

const ending = /(?:^|[_.-])(bytes|ms|seconds|percent)$/i;
const ofClocks = /(?:^|[_.-])time(?:stamp)?_seconds$/i; // a moment, and no duration

/** Returns the unit that the name of a field ends in: `rss_bytes`. */
export function unitOf(name: string): Unit | undefined {
  if (ofClocks.test(name)) return undefined;
  return ending.exec(name.replace(/([a-z0-9])([A-Z])/g, '$1_$2'))?.[1]?.toLowerCase() as Unit | undefined;
}

const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const minuteMs = 60_000;

/** Formats a number with its unit; undefined for what is no number. */
export function withUnit(value: unknown, unit: Unit | undefined): string | undefined {
  if (unit === undefined || !isNumber(value)) return undefined;
  const n = Number(value);
  if (unit === 'bytes') return bytes(Math.abs(n) < 1024 ? Number(n.toFixed(1)) : n);
  if (unit === 'percent') return `${short.format(n)} %`;
  const ms = unit === 'ms' ? n : n * 1000;
  if (ms >= minuteMs) return duration(ms);
  return Math.abs(ms) < 1000 && unit === 'ms' ? `${short.format(ms)} ms` : `${short.format(ms / 1000)} s`;
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** Reports whether a value is a time as in RFC 3339. */
export const isTime = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 40 && rfc3339.test(value) && !Number.isNaN(Date.parse(value));

/** The width of an age in characters. */
export const ageWidth = 14;
