import type { Resource } from '@watchtide/client';
import type { Row } from './rows';
import { column } from './column';
import { isNumber } from './number';
import { brief } from './brief';

/** What rows are sorted by; the key where that is equal. */
export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

/** `cpu`, or `-cpu` for the largest first. */
export function parseSort(text: string | null): Sort {
  if (!text || text === '-') return { column: 'key', descending: false };
  return text.startsWith('-') ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

/** Reads back what parseSort reads; undefined for what is taken unless it is said. */
export function sortText({ column, descending }: Sort): string | undefined {
  if (descending) return `-${column}`;
  return column === 'key' ? undefined : column;
}

/** What a row has to be sorted by, made once and not at each comparison. undefined: nothing. */
export type Rank = number | bigint | string | undefined;

const wholeNumber = /^(0|[1-9]\d{0,14})$/;

/** The rank of a resource. Numbers come before text, and what has none last. */
export function ranking({ column: id }: Sort): (resource: Resource) => Rank {
  if (id === 'key') return ({ key }) => wholeNumber.test(key) ? Number(key) : key; // process 9 before process 10
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

/** The order of rows. No two rows are equal in it, since no two have the same key. */
export function comparing({ descending }: Sort): Compare {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const ranked = a.rank === b.rank ? 0 : compareRanks(a.rank, b.rank, sign);
    if (ranked !== 0) return ranked;
    return a.key < b.key ? -sign : a.key > b.key ? sign : 0;
  };
}

// Text in the order of its code units: a locale's order takes twenty times as long.
function compareRanks(a: Rank, b: Rank, sign: number): number {
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -sign : sign;
  return a < b ? -sign : a > b ? sign : 0; // 0: the same number, once with all digits
}

/** Where a row stands, or would stand, among sorted rows. */
export function place(rows: readonly Row[], row: Row, compare: Compare): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(rows[middle]!, row) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Two sorted lists as one. */
export function merged(a: readonly Row[], b: readonly Row[], compare: Compare): Row[] {
  const out = new Array<Row>(a.length + b.length);
  for (let i = 0, j = 0, n = 0; n < out.length; n++) {
    const first = j >= b.length || (i < a.length && compare(a[i]!, b[j]!) < 0);
    out[n] = first ? a[i++]! : b[j++]!;
  }
  return out;
}

const runLength = 2000;

/** Sorts in steps of some milliseconds: whoever drives it may pause after each. */
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

// The last merges are long: they pause as well.
function* joined(a: Row[], b: Row[], compare: Compare): Generator<void, Row[]> {
  if (compare(a[a.length - 1]!, b[0]!) < 0) return a.concat(b); // as a snapshot in order has it
  const out: Row[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    out.push(compare(a[i]!, b[j]!) < 0 ? a[i++]! : b[j++]!);
    if (out.length % runLength === 0) yield;
  }
  return out.concat(i < a.length ? a.slice(i) : b.slice(j));
}
