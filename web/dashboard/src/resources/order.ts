import type { Resource } from '@watchtide/client';
import { brief } from './brief';
import { column } from './column';
import { isNumber } from './number';
import type { Rank, Row } from './row';

/** The order of rows; equal rows are sorted by their keys. */
export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

/** Parses an order: `cpu`, or `-cpu` for descending. */
export function parseSort(text: string | null): Sort {
  if (!text || text === '-') return { column: 'key', descending: false };
  return text.startsWith('-') ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

/** Formats an order for parseSort; undefined for the default. */
export function sortText({ column, descending }: Sort): string | undefined {
  if (descending) return `-${column}`;
  return column === 'key' ? undefined : column;
}

const wholeNumber = /^(0|[1-9]\d{0,14})$/;

/** Returns a function that computes the rank of a resource. Numbers come before text, and resources without a rank last. */
export function ranker({ column: id }: Sort): (resource: Resource) => Rank {
  if (id === 'key') return ({ key }) => (wholeNumber.test(key) ? Number(key) : key); // process 9 before process 10
  if (id === 'revision') return ({ revision }) => revision.padStart(20, '0'); // too large for a number
  const { get } = column(id);
  return (resource) => rank(get(resource));
}

function rank(value: unknown): Rank {
  if (value === undefined || value === null) return undefined;
  if (isNumber(value)) return value;
  return typeof value === 'string' ? value : brief(value);
}

export type Compare = (a: Row, b: Row) => number;

/** Returns a comparison of rows. No two rows are equal, since no two have the same key. */
export function comparator({ descending }: Sort): Compare {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const ranked = a.rank === b.rank ? 0 : compareRanks(a.rank, b.rank, sign);
    if (ranked !== 0) return ranked;
    return a.key < b.key ? -sign : a.key > b.key ? sign : 0;
  };
}

// Text is compared by code units: a locale's order takes twenty times as long.
function compareRanks(a: Rank, b: Rank, sign: number): number {
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -sign : sign;
  return a < b ? -sign : a > b ? sign : 0; // 0: equal as numbers, but one is a bigint
}

/** Returns the index of a row among sorted rows, or the index at which to insert it. */
export function insertionIndex(rows: readonly Row[], row: Row, compare: Compare): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(rows[middle]!, row) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Merges two sorted lists. */
export function merged(a: readonly Row[], b: readonly Row[], compare: Compare): Row[] {
  const out = new Array<Row>(a.length + b.length);
  for (let i = 0, j = 0, n = 0; n < out.length; n++) {
    const first = j >= b.length || (i < a.length && compare(a[i]!, b[j]!) < 0);
    out[n] = first ? a[i++]! : b[j++]!;
  }
  return out;
}

const runLength = 2000;

/** Sorts in steps of some milliseconds: the caller may pause after each. */
export function* sorted(rows: readonly Row[], compare: Compare): Generator<void, Row[]> {
  let runs: Row[][] = [];
  for (let i = 0; i < rows.length; i += runLength) {
    runs.push(rows.slice(i, i + runLength).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const longer: Row[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      const [a, b] = [runs[i]!, runs[i + 1]];
      longer.push(b ? yield* joined(a, b, compare) : a);
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

// The last merges are long, so they have steps as well.
function* joined(a: Row[], b: Row[], compare: Compare): Generator<void, Row[]> {
  if (compare(a[a.length - 1]!, b[0]!) < 0) return a.concat(b); // already in order, as in many snapshots
  const out: Row[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    out.push(compare(a[i]!, b[j]!) < 0 ? a[i++]! : b[j++]!);
    if (out.length % runLength === 0) yield;
  }
  return out.concat(i < a.length ? a.slice(i) : b.slice(j));
}
