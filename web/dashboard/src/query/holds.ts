import type { Resource } from '@watchtide/client';
import { column } from '../resources/column';
import { isNumber } from '../resources/number';
import { type Constant, constantOf, sized } from './constant';
import type { FieldTerm, Operator, Query, Term, TextTerm, Wanted } from './query';

/** Reports whether a resource is shown. */
export type Filter = (resource: Resource) => boolean;

/** Returns a filter for the resources of which all terms hold; undefined if there are no terms. */
export function filterOf(query: Query): Filter | undefined {
  if (query.length === 0) return undefined;
  const filters = query.map(filterOfTerm);
  return (resource) => filters.every((filter) => filter(resource));
}

function filterOfTerm(term: Term): Filter {
  const holds = term.kind === 'text' ? textFilter(term) : fieldFilter(term);
  if (term.kind === 'text' || isBuiltIn(term.field)) return term.not ? (resource) => !holds(resource) : holds;
  // As at the gateway, a value that is not JSON has no fields: nothing can be said of them.
  return (resource) => resource.encoding === undefined && holds(resource) !== term.not;
}

const isBuiltIn = (field: string) => field === 'key' || field === 'revision';

function textFilter({ text }: TextTerm): Filter {
  const plain = /^[\x20-\x7e]*$/.test(text);
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), plain ? 'i' : 'iu'); // iu takes twice as long
  const wanted = { pattern, length: plain ? text.length : 0, inScalars: !plain || occursInScalars(text) };
  return ({ key, value }) => pattern.test(key) || contains(value, wanted);
}

/** A text to search for. */
interface Occurrence {
  readonly pattern: RegExp;
  /** What is shorter does not have it. */
  readonly length: number;
  /** Whether numbers, truth values and null can have it. */
  readonly inScalars: boolean;
}

const occursInScalars = (text: string) =>
  /^[-+.\de]*$/i.test(text) || ['true', 'false', 'null'].some((word) => word.includes(text.toLowerCase()));

// Tests each text separately, which is much faster than testing the JSON of the value. The tests
// before that of the pattern save most of the time.
function contains(value: unknown, wanted: Occurrence): boolean {
  if (typeof value === 'string') return value.length >= wanted.length && wanted.pattern.test(value);
  if (typeof value !== 'object' || value === null) return wanted.inScalars && wanted.pattern.test(String(value));
  for (const name in value) {
    const member = (value as Record<string, unknown>)[name];
    if (typeof member === 'string' ? member.length >= wanted.length && wanted.pattern.test(member) : contains(member, wanted)) return true;
  }
  return false;
}

function fieldFilter({ field, operator, wanted }: FieldTerm): Filter {
  if (field === 'key') return keyFilter(operator, wanted);
  if (field === 'revision') return revisionFilter(operator, wanted);
  const { get } = column(field);
  const tests = wanted.map((one) => (operator === ':' ? matches(one) : compares(operator, one)));
  return tests.length === 1 ? (resource) => tests[0]!(get(resource)) : (resource) => tests.some((test) => test(get(resource)));
}

type Test = (value: unknown) => boolean;

function matches(wanted: Wanted): Test {
  const { text, how } = wanted;
  if (how === 'any') return (value) => value !== undefined;
  if (how !== 'equal') return (value) => typeof value === 'string' && occurs(value, text, how);
  const constant = constantOf(wanted);
  if (constant === undefined) return (value) => value === text;
  return (value) => value === text || equals(value, constant);
}

// A number and a bigint can be equal.
// biome-ignore-start lint/suspicious/noDoubleEquals: only == compares the two
const equals = (value: unknown, constant: Constant) =>
  isNumber(value) && isNumber(constant) ? numberOf(value) == constant : value === constant;
// biome-ignore-end lint/suspicious/noDoubleEquals: only == compares the two

const numberOf = (value: number | bigint) => (typeof value === 'bigint' ? sized(value) : value);

function occurs(value: string, text: string, how: Wanted['how']): boolean {
  if (how === 'prefix') return value.startsWith(text);
  return how === 'suffix' ? value.endsWith(text) : value.includes(text);
}

// Numbers are compared with numbers, and texts with texts.
function compares(operator: Operator, wanted: Wanted): Test {
  const constant = constantOf(wanted);
  if (isNumber(constant)) return (value) => isNumber(value) && satisfies(operator, order(numberOf(value), constant));
  return (value) => typeof value === 'string' && satisfies(operator, orderOfTexts(value, wanted.text));
}

const order = (a: number | bigint, b: number | bigint) => (a < b ? -1 : a > b ? 1 : 0);

function satisfies(operator: Operator, order: number): boolean {
  switch (operator) {
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case ':':
      return order === 0;
  }
}

/** Compares two texts by their characters and not by their code units: so does the gateway. */
export function orderOfTexts(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const [x = -1, y = -1] = [a.charCodeAt(at), b.charCodeAt(at)].map((unit) => (Number.isNaN(unit) ? -1 : unit));
  const [pairA, pairB] = [isSurrogate(x), isSurrogate(y)];
  return pairA === pairB ? x - y : pairA ? 1 : -1;
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;

// A key that is not UTF-8 is compared as bytes, each of which is a character.
function keyFilter(operator: Operator, wanted: readonly Wanted[]): Filter {
  const tests = wanted.map((one) => keyTest(operator, one));
  const bytes = wanted.map((one) => keyTest(operator, { ...one, text: bytesOf(one.text) }));
  return ({ key, key_encoding }) => (key_encoding === undefined ? tests.some((test) => test(key)) : bytes.some((test) => test(atob(key))));
}

function keyTest(operator: Operator, { text, how }: Wanted): (key: string) => boolean {
  if (operator !== ':') return (key) => satisfies(operator, orderOfTexts(key, text));
  if (how === 'any') return () => true;
  return how === 'equal' ? (key) => key === text : (key) => occurs(key, text, how);
}

const bytesOf = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

const largest = 2n ** 63n - 1n; // of the gateway's revisions in filters

function revisionFilter(operator: Operator, wanted: readonly Wanted[]): Filter {
  if (wanted.some(({ how }) => how === 'any')) return () => true;
  const numbers = wanted.map(({ text }) => BigInt(text));
  return ({ revision }) => {
    const exact = BigInt(revision);
    const value = exact < largest ? exact : largest;
    return numbers.some((number) => satisfies(operator, order(value, number)));
  };
}
