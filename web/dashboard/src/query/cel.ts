import { columnPath } from '../resources/column';
import { isNumber } from '../resources/number';
import { type Path, parsePath } from '../resources/path';
import { constantOf } from './constant';
import type { FieldTerm, Query, Term, TextTerm, Wanted } from './query';

/** A query in two parts: what the gateway evaluates, and what is left for the page. */
export interface Split {
  /** An expression in CEL; empty if the gateway can do nothing. */
  readonly cel: string;
  readonly rest: Query;
}

// What the gateway takes as a parameter, in bytes.
const maxBytes = 2048;

/**
 * Splits a query. The gateway evaluates conditions on fields, exactly as the page does. It cannot search the whole of a
 * resource for a text: it searches the key and these columns, or nothing if there are none.
 */
export function split(query: Query, columns?: readonly string[]): Split {
  const cel = query.filter((term) => isField(term) || columns).map((term) => (isField(term) ? celOf(term) : celOfText(term, columns!)));
  const joined = cel.join(' && ');
  if (joined === '' || new TextEncoder().encode(joined).length > maxBytes) return { cel: '', rest: query };
  return { cel: joined, rest: query.filter((term) => !isField(term) && !columns) };
}

const isField = (term: Term): term is FieldTerm => term.kind === 'field';

/** Returns in CEL that a text occurs in the key, or in a column whose value is a text, whatever its case. */
export function celOfText({ text, not }: TextTerm, columns: readonly string[]): string {
  const pattern = quote(`(?i)${text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}`);
  const tests = columns.map((id) => {
    const path = columnPath(id);
    const quick = `${placeOf(path)}.matches(${pattern})`;
    return { quick, total: `(${[...guards(path), `type(${placeOf(path)}) == string`, quick].join(' && ')})` };
  });
  const inKey = `key.matches(${pattern})`;
  // Where one of the tests has no result, another one that is true counts.
  return not ? `!${anyOf([inKey, ...tests.map(({ total }) => total)])}` : anyOf([inKey, ...tests.map(({ quick }) => quick)]);
}

/** Returns a condition on a field in CEL. */
export function celOf(term: FieldTerm): string {
  if (term.field === 'key' || term.field === 'revision') return builtIn(term);
  const path = term.field === 'value' ? [] : parsePath(term.field);
  const place = placeOf(path);
  const tests = term.wanted.map((one) => (term.operator === ':' ? matches(place, one) : compares(place, term, one)));
  if (term.not) return `!(${[...guards(path), anyOf(tests.map(({ total }) => total))].join(' && ')})`;
  if (tests.some(({ total }) => total === 'true')) return exists(path);
  return anyOf(tests.map(({ quick }) => quick)); // without the field there is no result, and so no match
}

const exists = (path: Path) => (path.length > 0 ? guards(path).join(' && ') : '(value == null || value != null)');

/** A test of something that exists. quick has no result, instead of false, where it is of another type. */
interface Test {
  readonly quick: string;
  readonly total: string;
}

const same = (text: string): Test => ({ quick: text, total: text });

const anyOf = (tests: readonly string[]) => (tests.length === 1 ? tests[0]! : tests.includes('true') ? 'true' : `(${tests.join(' || ')})`);

function matches(place: string, wanted: Wanted): Test {
  const { text, how } = wanted;
  if (how === 'any') return same('true');
  if (how !== 'equal') {
    const quick = `${place}.${functions[how]}(${quote(text)})`;
    return { quick, total: `(type(${place}) == string && ${quick})` };
  }
  const constant = constantOf(wanted);
  return same(constant === undefined ? `${place} == ${quote(text)}` : `${place} in [${literal(constant)}, ${quote(text)}]`);
}

const functions = { prefix: 'startsWith', suffix: 'endsWith', part: 'contains' };

function compares(place: string, { operator }: FieldTerm, wanted: Wanted): Test {
  const constant = constantOf(wanted);
  const types = isNumber(constant) ? ['int', 'uint', 'double'] : ['string'];
  const quick = `${place} ${operator} ${isNumber(constant) ? literal(constant) : quote(wanted.text)}`;
  return { quick, total: `(${anyOf(types.map((type) => `type(${place}) == ${type}`))} && ${quick})` };
}

// Says that a field exists. Without these, the negation of a condition would have no
// result where there is no field.
function guards(path: Path): string[] {
  return path.flatMap((name, i) => {
    const outer = placeOf(path.slice(0, i));
    return [`type(${outer}) == map`, `${quote(name)} in ${outer}`];
  });
}

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;
const reserved = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(' '),
);

const placeOf = (path: Path) =>
  path.reduce((place, name) => (identifier.test(name) && !reserved.has(name) ? `${place}.${name}` : `${place}[${quote(name)}]`), 'value');

function builtIn({ field, operator, wanted, not }: FieldTerm): string {
  const tests = wanted.map(({ text, how }) => {
    if (how === 'any') return 'true';
    const constant = field === 'key' ? quote(text) : bounded(text);
    if (operator === ':' && constant.endsWith('.0') && field === 'revision') return 'false';
    if (operator !== ':') return `${field} ${operator} ${constant}`;
    return how === 'equal' ? `${field} == ${constant}` : `${field}.${functions[how]}(${constant})`;
  });
  return not ? `!(${anyOf(tests)})` : anyOf(tests);
}

// As a double where it is more than the largest revision in a filter: all are less, and none is equal.
const bounded = (text: string) => (BigInt(text) < 2n ** 63n ? String(BigInt(text)) : `${BigInt(text)}.0`);

function literal(constant: NonNullable<ReturnType<typeof constantOf>> | null): string {
  if (typeof constant === 'bigint') return constant < 2n ** 63n ? String(constant) : `${constant}u`;
  if (typeof constant !== 'number') return String(constant);
  const text = String(constant);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

// A string of JSON is one of CEL, except for half a character, which JSON can have.
const quote = (text: string) =>
  JSON.stringify(text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd'));
