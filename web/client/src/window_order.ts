import type { Resource } from './resource.js';

interface Term {
  readonly path: readonly string[];
  readonly descending: boolean;
}

/**
 * Returns a function that compares resources as a gateway does: by null, false, true, numbers, texts by code points, and
 * then arrays and objects, which are all equal. What is absent comes last in both directions, and what is equal comes in
 * the order of its keys. Numbers are compared as they were parsed: with the digits that `parse` has kept.
 */
export function compareBy(order: string | readonly string[]): (a: Resource, b: Resource) => number {
  const terms = termsOf(String([order]));
  return (a, b) => {
    for (const { path, descending } of terms) {
      const [x, y] = [at(a.value, path), at(b.value, path)];
      if (x === undefined || y === undefined) {
        if (x !== y) return x === undefined ? 1 : -1;
        continue;
      }
      const difference = compareValues(x, y);
      if (difference) return descending ? -difference : difference;
    }
    return compareBytes(bytesOf(a), bytesOf(b));
  };
}

// A name may be in double quotes, as in JSON, if it has a comma, a dot or a minus in front.
const part = /(-?)((?:"(?:[^"\\]|\\.)*"|[^",.])+(?:\.(?:"(?:[^"\\]|\\.)*"|[^",.])+)*)(?:,|$)/gy;
const name = /"(?:[^"\\]|\\.)*"|[^".]+/g;

function termsOf(order: string): Term[] {
  return Array.from(order.matchAll(part), ([, minus, path]) => ({
    descending: minus !== '',
    path: (path!.match(name) ?? []).map((one) => (one.startsWith('"') ? (JSON.parse(one) as string) : one)),
  }));
}

function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const one of path) {
    if (typeof found !== 'object' || found === null || Array.isArray(found) || !Object.hasOwn(found, one)) return undefined;
    found = (found as Record<string, unknown>)[one];
  }
  return found;
}

const kindOf = (value: unknown): number => {
  if (value === null) return 0;
  if (value === false) return 1;
  if (value === true) return 2;
  if (typeof value === 'number' || typeof value === 'bigint') return 3;
  return typeof value === 'string' ? 4 : 5;
};

function compareValues(a: unknown, b: unknown): number {
  const [kind, other] = [kindOf(a), kindOf(b)];
  if (kind !== other) return kind - other;
  if (kind === 3) return (a as number) < (b as number) ? -1 : Number((a as number) > (b as number));
  return kind === 4 ? compareTexts(a as string, b as string) : 0;
}

const maxText = 256; // bytes of UTF-8 that count

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return compareBytes(beginning(a), beginning(b));
}

// The order of code points is that of the bytes of UTF-8.
const encoder = new TextEncoder();
const buffer = new Uint8Array(maxText);

function beginning(text: string): Uint8Array {
  const { written } = encoder.encodeInto(text.slice(0, maxText), buffer); // whole code points
  return buffer.slice(0, written);
}

function bytesOf({ key, key_encoding }: Resource): Uint8Array {
  return key_encoding === 'base64' ? Uint8Array.from(atob(key), (one) => one.charCodeAt(0)) : encoder.encode(key);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
