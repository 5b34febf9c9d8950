import fc from 'fast-check';
import { fieldText, type Operator, type Query, valueText, type Wanted } from '../../src/query/query';

const words = [
  'critical',
  'Crit',
  'cri',
  'a b',
  'ü',
  '\u{1f980}',
  '\uffee',
  '',
  '2',
  '2.0',
  '-7',
  'true',
  'null',
  '1e3',
  '0x2',
  'a"b\\c',
  'a,b',
  '*',
  '!x',
];
const word = fc.oneof(fc.constantFrom(...words), fc.string({ unit: 'binary', maxLength: 4 }));
const names = ['state', 'cpu', 'a-b', 'in', 'null', 'a:b', 'x'];
const large = [9007199254740993n, -9223372036854775808n, 9223372036854775807n, 18446744073709551615n];
const numbers = [0, 2, -7, 2.5, 1e3, 1e21, 0.1, -2.5];

const wanted: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ text: word, how: fc.constant('equal' as const), quoted: fc.constant(true) }) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('critical', 'cri', '2', '2.0', '-7', 'true', 'null', '1e3', '2.5', 'ü', ...large.map(String))
      .map((text) => ({ text, how: 'equal' as const, quoted: false })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('cri', 'c', 'al', 'ü', '2'), fc.constantFrom('prefix' as const, 'suffix' as const, 'part' as const))
      .map(([text, how]) => ({ text, how, quoted: false })),
  },
  { weight: 1, arbitrary: fc.constant({ text: '', how: 'any' as const, quoted: false }) },
);

const path = fc.oneof(
  fc.constantFrom('value', 'key', 'x\\.y'),
  fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }).map((path) => path.join('.')),
);

const field = fc
  .record({
    not: fc.boolean(),
    field: path,
    operator: fc.constantFrom<Operator>(':', ':', '>', '>=', '<', '<='),
    wanted: fc.array(wanted, { minLength: 1, maxLength: 3 }),
  })
  .filter(({ operator, wanted }) => operator === ':' || wanted[0]!.how === 'equal')
  .map((term) => ({ kind: 'field' as const, ...term, wanted: term.operator === ':' ? term.wanted : term.wanted.slice(0, 1) }));

const revision = fc
  .record({
    not: fc.boolean(),
    operator: fc.constantFrom<Operator>(':', '>', '<='),
    text: fc.constantFrom('0', '7', '9223372036854775807', '9999999999999999999'),
  })
  .map(({ text, ...term }) => ({
    kind: 'field' as const,
    field: 'revision',
    ...term,
    wanted: [{ text, how: 'equal' as const, quoted: false }],
  }));

const text = fc.record({ kind: fc.constant('text' as const), not: fc.boolean(), text: word });

/** Queries of conditions on fields. */
export const fields: fc.Arbitrary<Query> = fc.array(fc.oneof({ weight: 8, arbitrary: field }, { weight: 1, arbitrary: revision }), {
  minLength: 1,
  maxLength: 3,
});

/** Queries for texts. */
export const texts: fc.Arbitrary<Query> = fc.array(text, { minLength: 1, maxLength: 2 });

/** Queries. */
export const queries: fc.Arbitrary<Query> = fc.array(fc.oneof(field, revision, text), { maxLength: 4 });

/** Returns the text of a query. */
export const written = (query: Query): string =>
  query
    .map((term) => {
      const not = term.not ? '!' : '';
      if (term.kind === 'text') return `${not}${quoted(term.text)}`;
      return `${not}${fieldText(term.field)}${term.operator}${term.wanted.map(wantedText).join(',')}`;
    })
    .join(' ');

function wantedText({ text, how, quoted: isQuoted }: Wanted): string {
  if (how === 'any') return '*';
  if (isQuoted) return quoted(text);
  return `${how === 'suffix' || how === 'part' ? '*' : ''}${valueText(text)}${how === 'prefix' || how === 'part' ? '*' : ''}`;
}

const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;

const scalar = fc.oneof(word, fc.constantFrom<unknown>(...numbers, ...large, true, false, null, [], ['critical'], [2]));

const object = (inner: fc.Arbitrary<unknown>) =>
  fc.array(fc.tuple(fc.constantFrom(...names, 'x.y'), inner), { maxLength: 4 }).map((members) => Object.fromEntries(members) as unknown);

/** Values with the fields of the queries. */
export const values: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 1, arbitrary: scalar },
  {
    weight: 5,
    arbitrary: object(fc.oneof({ weight: 3, arbitrary: scalar }, { weight: 2, arbitrary: object(fc.oneof(scalar, object(scalar))) })),
  },
);

export const keys = fc.oneof(fc.constantFrom('a/b', 'critical', '2', 'ü'), fc.string({ unit: 'binary', minLength: 1, maxLength: 5 }));
