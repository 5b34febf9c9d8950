import fc from 'fast-check';
import { expect, it } from 'vitest';
import { filterOf } from '../../src/query/holds';
import type { Query } from '../../src/query/query';

const texts = fc.oneof(
  fc.constantFrom('', 'true', 'Null', 'x-1.5E', '12', 'critical', 'İ', 'ſ', 'K', 'ß', '😀'),
  fc.string({ maxLength: 4, unit: fc.constantFrom('a', 'E', '1', '-', '.', 'k', 's', 'ſ', 'K', 'é') }),
);
const values = fc.letrec((of) => ({
  value: fc.oneof(
    texts,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.bigInt(),
    fc.boolean(),
    fc.constant(null),
    fc.array(of('value'), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 2 }), of('value'), { maxKeys: 3 }),
  ),
})).value;
const wanted = fc.oneof(
  texts.filter((text) => text !== ''),
  fc.constantFrom('tr', 'ALS', 'ull', 'e+', '1.', '-', '0', 'e'),
);

// Texts of which each is searched for in the simplest way.
const leaves = (value: unknown): string[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [String(value)];

it('a text is found in the key, and in each text, number, truth value and null of the value', () => {
  fc.assert(
    fc.property(wanted, texts, values, (text, key, value) => {
      const escaped = text.replace(/[.+]/g, '\\$&');
      const pattern = new RegExp(escaped, /^[\x20-\x7e]*$/.test(text) ? 'i' : 'iu');
      const found = [key, ...leaves(value)].some((leaf) => pattern.test(leaf));
      const query: Query = [{ kind: 'text', text, not: false }];
      expect(filterOf(query)!({ key, value, revision: '1' })).toBe(found);
    }),
    { numRuns: 2000 },
  );
});
