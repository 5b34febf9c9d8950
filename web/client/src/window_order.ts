import type { Resource } from './resource.js';

interface Term {
  readonly path: readonly string[];
  readonly descending: boolean;
}

/**
 * Returns a function that compares resources as a gateway does: by null, false, true, numbers, texts by code points, and
 * then arrays and objects, which are all equal. What is absent comes last in both directions, and what is equal comes in
 * the order of its keys. Numbers are compared as they were parsed: with the digits that `parse` has kept. Throws a TypeError
 * that says what is wrong with an order, and where.
 */
export const compareBy = (order: string | readonly string[]): ((a: Resource, b: Resource) => number) =>
  compareTerms(termsOf(String([order])));

/** @internal */
export function compareTerms(terms: readonly Term[]): (a: Resource, b: Resource) => number {
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

// A name is in double quotes, as in JSON, if it has one of these characters, or a sign in front.
const quoted = /"(?:[^"\\]|\\.)*"/suy;
const plain = /[^.,"'[\]\\\p{White_Space}\p{Cc}]+/uy;
const advice = 'want a minus before the path where the order descends, and nothing where it ascends';

const termsOf = (order: string): Term[] => new Reader(order).terms();

class Reader {
  #at = 0;

  constructor(private readonly order: string) {}

  terms(): Term[] {
    const terms = new Map<string, Term>();
    do {
      this.#skip();
      const from = this.#at;
      const term = this.#term();
      const path = JSON.stringify(term.path);
      if (terms.has(path)) this.#fail(`the path ${term.path.join('.')} is there twice`, from);
      terms.set(path, term);
    } while (this.#found(','));
    return [...terms.values()];
  }

  #term(): Term {
    const descending = this.#found('-');
    const sign = this.#skip();
    if (sign === '-') this.#fail(`a second -: ${advice}`);
    if (sign === '+') this.#fail(`unexpected +: ${advice}`);
    const path: string[] = [];
    do path.push(this.#name());
    while (this.#found('.'));
    const colon = this.order.slice(0, this.#at).search(/:(?:asc|desc) *$/i);
    if (colon >= 0) this.#fail(`unexpected ${this.order.slice(colon, this.#at).trimEnd()}: ${advice}`, colon);
    const next = this.#skip();
    if (next !== undefined && next !== ',') this.#unexpected();
    return { path, descending };
  }

  #name(): string {
    const next = this.#skip();
    if (next === undefined) this.#fail('a name is missing at the end');
    if (next === ',' || next === '.') this.#fail(`a name is missing before ${next}`);
    const from = this.#at;
    if (next !== '"') return this.#take(plain) ?? this.#unexpected();
    try {
      return JSON.parse(this.#take(quoted)!) as string;
    } catch {
      return this.#fail('want a name in double quotes, as in JSON', from);
    }
  }

  /** Skips spaces, and returns what is behind them. */
  #skip(): string | undefined {
    while (this.order[this.#at] === ' ') this.#at++;
    return this.order[this.#at];
  }

  /** Takes the character, if it comes next. */
  #found(character: string): boolean {
    const found = this.#skip() === character;
    if (found) this.#at++;
    return found;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.order)?.[0];
    this.#at += text?.length ?? 0;
    return text;
  }

  #unexpected(): never {
    const rest = this.order.slice(this.#at);
    const [word] = /^(?:asc|desc)(?= *(?:,|$))/i.exec(rest) ?? [];
    return this.#fail(
      word ? `unexpected ${word}: ${advice}` : `unexpected ${[...rest][0]}: a name with such a character is in double quotes`,
    );
  }

  #fail(problem: string, at = this.#at): never {
    throw new TypeError(`order ${JSON.stringify(this.order)}, column ${[...this.order.slice(0, at)].length + 1}: ${problem}`);
  }
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
