// The language of the filter field: `state:critical cpu>2 !legacy "two words"`.

export type Operator = ':' | '>' | '>=' | '<' | '<=';

/** One alternative of a value: text that must be equal, or that must occur at a place if there is a `*`. */
export interface Wanted {
  readonly text: string;
  /** `equal`; or with a `*` after it, before it, on both sides, or alone. */
  readonly how: 'equal' | 'prefix' | 'suffix' | 'part' | 'any';
  /** In quotes, and so never a number, true, false or null. */
  readonly quoted: boolean;
}

/** A condition on a field. */
export interface FieldTerm {
  readonly kind: 'field';
  readonly not: boolean;
  /** The name of the field's column: a path, `key`, `revision` or `value`. */
  readonly field: string;
  readonly operator: Operator;
  /** At least one; more than one only with `:`. */
  readonly wanted: readonly Wanted[];
}

/** A text that must occur in the key or in the value, whatever its case. */
export interface TextTerm {
  readonly kind: 'text';
  readonly not: boolean;
  readonly text: string;
}

export type Term = FieldTerm | TextTerm;

/** All terms must hold. */
export type Query = readonly Term[];

/** The place where a query is wrong, and what would be right. */
export interface Mistake {
  /** Both are indexes of code units; to is behind the last. */
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

/** Parses a query. It is the query, or the first mistake. */
export function parseQuery(text: string): Query | Mistake {
  const reader = new Reader(text);
  const terms: Term[] = [];
  try {
    for (reader.skipSpace(); !reader.atEnd; reader.skipSpace()) terms.push(term(reader));
  } catch (mistake) {
    if (mistake instanceof Wrong) return mistake.mistake;
    throw mistake;
  }
  return terms;
}

export const isMistake = (query: Query | Mistake): query is Mistake => 'reason' in query;

/** Returns the text of a field in a query: what means something there has a backslash before it. */
export const fieldText = (id: string): string => id.replace(/[:<>=!"\s]/gu, '\\$&');

/** Returns the text of a value in a query, in quotes where it needs them. */
export function valueText(text: string): string {
  const bare = text !== '' && !/[\s",*\\]/u.test(text) && !/^[<>=!]/.test(text);
  return bare ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

const operators = ['!=', '>=', '<=', ':', '=', '>', '<'] as const;

function term(reader: Reader): Term {
  const start = reader.at;
  const not = reader.take('!');
  if (reader.atEnd || reader.atSpace) throw wrong(start, reader.at, 'a term is missing after “!”: write it without a space, as in !legacy');
  if (reader.peek === '"') return { kind: 'text', not, text: reader.quoted() };
  const from = reader.at;
  const name = reader.name();
  const operator = operators.find((operator) => reader.take(operator));
  if (!operator) return { kind: 'text', not, text: unescaped(name) };
  if (name === '') throw wrong(from, reader.at, `the name of a field is missing before “${operator}”: as in state${operator}value`);
  if (operator === '!=' && not) throw wrong(start, reader.at, '“!” is there twice: one of them is enough');
  return condition(reader, fieldOf(name), operator, not);
}

function condition(reader: Reader, field: string, operator: (typeof operators)[number], not: boolean): FieldTerm {
  const from = reader.at;
  const wanted = [value(reader, field, operator)];
  while (reader.take(',')) wanted.push(value(reader, field, operator));
  const equals = operator === ':' || operator === '=' || operator === '!=';
  const compares = equals ? ':' : operator;
  if (!equals && wanted.length > 1) throw wrong(from, reader.at, `“${operator}” takes one value: only “:” takes several`);
  if (!equals && wanted[0]!.how !== 'equal') throw wrong(from, reader.at, `“${operator}” takes no “*”: only “:” does`);
  if (field === 'revision') checkRevision(wanted, from, reader.at);
  return { kind: 'field', not: not || operator === '!=', field, operator: compares, wanted };
}

function checkRevision(wanted: readonly Wanted[], from: number, to: number): void {
  const numbers = wanted.every(({ text, how }) => how === 'any' || (how === 'equal' && /^\d{1,19}$/.test(text)));
  if (!numbers) throw wrong(from, to, 'a revision is a whole number: as in revision>100');
}

function value(reader: Reader, field: string, operator: string): Wanted {
  if (reader.peek === '"') {
    const text = reader.quoted();
    return { text, how: 'equal', quoted: true };
  }
  const from = reader.at;
  const text = reader.bare();
  if (text === '') throw wrong(from, from + 1, `a value is missing after “${operator}”: for an empty text, write ${field}${operator}""`);
  return pattern(text, from);
}

function pattern(text: string, from: number): Wanted {
  if (/^\*+$/.test(text)) return { text: '', how: 'any', quoted: false };
  const before = text.startsWith('*');
  const after = text.endsWith('*');
  const inner = text.slice(before ? 1 : 0, after ? -1 : undefined);
  const star = inner.indexOf('*');
  if (star >= 0) {
    const at = from + star + (before ? 1 : 0);
    throw wrong(
      at,
      at + 1,
      'a “*” may only be the first or the last character: put the value in quotes to search for the character itself',
    );
  }
  return { text: inner, how: before ? (after ? 'part' : 'suffix') : after ? 'prefix' : 'equal', quoted: false };
}

// The other backslashes belong to the path.
const fieldOf = (name: string) => name.replace(/\\([^])/gu, (pair, char: string) => (/[:<>=!"\s]/u.test(char) ? char : pair));

const unescaped = (name: string) => name.replace(/\\([^])/gu, '$1');

/** Reads the characters of a query from left to right. */
class Reader {
  at = 0;

  constructor(readonly text: string) {}

  get atEnd(): boolean {
    return this.at >= this.text.length;
  }

  get atSpace(): boolean {
    return /\s/u.test(this.peek);
  }

  get peek(): string {
    return this.text.charAt(this.at);
  }

  skipSpace(): void {
    while (!this.atEnd && this.atSpace) this.at++;
  }

  take(text: string): boolean {
    if (!this.text.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  /** Reads a name up to an operator or a space; what follows a backslash belongs to it. */
  name(): string {
    return this.#match(/(?:\\[^]|(?!!=)[^\\\s:<>=])*\\?/uy);
  }

  /** Reads a value up to a comma or a space. */
  bare(): string {
    return this.#match(/[^\s,"]*/uy);
  }

  /** Reads a text in quotes, in which a backslash escapes a quote and a backslash. */
  quoted(): string {
    const from = this.at;
    const text = this.#match(/"(?:[^"\\]|\\[^])*"/uy);
    if (text === '') throw wrong(from, this.text.length, 'the quote is not closed: write another " at the end of the text');
    if (!this.atEnd && !this.atSpace && this.peek !== ',') throw wrong(this.at, this.at + 1, 'a space is missing after the quote');
    return unescaped(text.slice(1, -1));
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const [found = ''] = pattern.exec(this.text) ?? [];
    this.at += found.length;
    return found;
  }
}

class Wrong extends Error {
  constructor(readonly mistake: Mistake) {
    super(mistake.reason);
  }
}

const wrong = (from: number, to: number, reason: string) => new Wrong({ from, to, reason });
