import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { column, columnID, parseColumns } from '../../src/resources/column';
import { fieldsOf, pick } from '../../src/resources/fields';
import { parseSort, sortText } from '../../src/resources/order';

const resource = (value: unknown, key = 'k') => ({ key, revision: '7', value });

describe('a column', () => {
  it('is parsed as it was formatted, whatever the names in the path', () => {
    const name = fc.string({ unit: fc.constantFrom('a', '.', ',', '\\', '-', 'é'), minLength: 1 });
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), fc.string(), (path, value) => {
        const id = columnID(path);
        const nested = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
        const [read] = parseColumns(`key,${id}`).slice(1);
        expect(read).toBe(id);
        expect(column(read!).get(resource(nested))).toBe(value);
        for (const descending of [false, true]) {
          expect(parseSort(sortText({ column: id, descending }) ?? null)).toEqual({ column: id, descending });
        }
      }),
    );
  });

  it('of a field named key is not that of the key', () => {
    const id = columnID(['key']);
    expect(column(id).get(resource({ key: 'inner' }, 'outer'))).toBe('inner');
    expect(column('key').get(resource({ key: 'inner' }, 'outer'))).toBe('outer');
  });

  it('is empty for fields that do not exist, inherited names included', () => {
    expect(column('a.b').get(resource('text'))).toBeUndefined();
    expect(column('constructor').get(resource({}))).toBeUndefined();
  });
});

describe('the columns that are picked', () => {
  it('are the most informative ones, in the order of the fields', () => {
    const sample = Array.from({ length: 20 }, (_, i) =>
      resource({
        same: 'always',
        id: i,
        spec: { replicas: i % 3, rare: i === 0 ? 1 : undefined },
        note: 'x'.repeat(100 + i),
        state: i % 2 ? 'on' : 'off',
        list: [i],
        a: i,
        b: -i,
      }),
    );
    const fields = fieldsOf(sample);
    expect(pick(fields, { columns: 6, narrow: false })).toEqual(['key', 'id', 'spec.replicas', 'state', 'list', 'a', 'b']);
    expect(pick(fields, { columns: 3, narrow: true })).toEqual(['key', 'state', 'id', 'list']);
    expect(pick(fields, { columns: 9, narrow: false })).toContain('note');
  });

  it('are the value if there are no fields', () => {
    expect(pick(fieldsOf([resource('a'), resource(2), resource(null)]), { columns: 6, narrow: false })).toEqual(['key', 'value']);
  });

  it('distinguish numeric columns', () => {
    expect(fieldsOf([resource({ n: 1, t: 'a' })]).map(({ id, numeric }) => [id, numeric])).toEqual([
      ['n', true],
      ['t', false],
    ]);
  });
});
