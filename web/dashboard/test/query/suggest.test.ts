import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isMistake, parseQuery } from '../../src/query/query';
import { accepted, suggest } from '../../src/query/suggest';
import { unknownField, valuesOf } from '../../src/query/values';

const fields = ['key', 'state', 'status.phase', 'cpu', 'a:b'].map((id) => ({ id, title: id, numeric: id === 'cpu' }));
const resources = ['critical', 'passing', 'passing', 'in use'].map((state, i) => ({
  key: `k${i}`,
  value: { state, cpu: i },
  revision: '1',
}));
const values = (field: string) => valuesOf(field, resources);
const titles = (text: string, cursor = text.length) => suggest(text, cursor, fields, values).map(({ title }) => title);

describe('suggestions', () => {
  it('are the fields whose names begin so, or have a part that does', () => {
    expect(titles('sta')).toEqual(['state', 'status.phase']);
    expect(titles('x !ph')).toEqual(['status.phase']);
    expect(titles('STATE')).toEqual(['state']);
    expect(titles('"sta')).toEqual([]);
    expect(titles('')).toEqual([]);
  });

  it('are the frequent values of a field', () => {
    expect(titles('state:')).toEqual(['passing', 'critical', 'in use']);
    expect(titles('!state:pas')).toEqual(['passing']);
    expect(titles('state:critical,in')).toEqual(['in use']);
    expect(titles('cpu>')).toEqual(['0', '1', '2', '3']);
    expect(titles('none:')).toEqual([]);
  });

  it('replace what was typed', () => {
    const take = (text: string, cursor = text.length) => accepted(text, suggest(text, cursor, fields, values)[0]!);
    expect(take('x sta')).toEqual({ text: 'x state:', cursor: 8 });
    expect(take('cp')).toEqual({ text: 'cpu>', cursor: 4 });
    expect(take('a')).toEqual({ text: 'a\\:b:', cursor: 5 });
    expect(take('state:in')).toEqual({ text: 'state:"in use" ', cursor: 15 });
    expect(take('state:pa cpu>1', 8)).toEqual({ text: 'state:passing cpu>1', cursor: 13 });
  });

  it('of values lead to a query, whatever the value', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), (value) => {
        const [suggestion] = suggest('state:', 6, fields, () => [{ text: value, count: 1 }]);
        if (value === '') return;
        const query = parseQuery(accepted('state:', suggestion!).text);
        if (isMistake(query)) throw new Error(query.reason);
        expect(query).toMatchObject([{ field: 'state', wanted: [{ text: value, how: 'equal' }] }]);
      }),
    );
  });

  it('name a field that nothing has', () => {
    const unknown = (text: string) => unknownField(parseQuery(text) as never, () => resources);
    expect(unknown('state:x stat:y')).toBe('stat');
    expect(unknown('state:x text')).toBeUndefined();
    expect(unknownField(parseQuery('stat:y') as never, () => [])).toBeUndefined();
  });
});
