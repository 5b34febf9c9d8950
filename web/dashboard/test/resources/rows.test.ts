import type { Resource } from '@watchtide/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterOf } from '../../src/query/holds';
import { parseQuery, type Query } from '../../src/query/query';
import { comparator, parseSort, ranker } from '../../src/resources/order';
import { fadeMs, Rows } from '../../src/resources/rows';

const resource = (key: string, value: unknown, revision = '1'): Resource => ({ key, value, revision });
const parseFilter = (text: string) => filterOf(parseQuery(text) as Query);
const none: ReadonlySet<string> = new Set();

function rowsOf(resources: Resource[], sort = 'key', filter = ''): Rows {
  const rows = new Rows();
  arrange(rows, sort, filter, new Map(resources.map((resource) => [resource.key, resource])));
  return rows;
}

function arrange(rows: Rows, sort: string, filter: string, all?: ReadonlyMap<string, Resource>): void {
  for (const _ of rows.arrange({ sort: parseSort(sort), filter: parseFilter(filter) }, all));
}

const keys = (rows: Rows) => rows.shown.map(({ key }) => key);

describe('rows', () => {
  it('are sorted by a field, numbers as numbers, and rows without it last', () => {
    const rows = rowsOf([resource('a', { n: 10 }), resource('b', { n: 9 }), resource('c', {}), resource('d', { n: 'x' })], 'n');
    expect(keys(rows)).toEqual(['b', 'a', 'd', 'c']);
    arrange(rows, '-n', '');
    expect(keys(rows)).toEqual(['d', 'a', 'b', 'c']);
  });

  it('sort integers that are too large for a number', () => {
    const rows = rowsOf(
      [resource('a', 9007199254740994n), resource('b', 9007199254740993n), resource('c', 2.5), resource('d', 'x')],
      'value',
    );
    expect(keys(rows)).toEqual(['c', 'b', 'a', 'd']);
  });

  it('are distinct if they have the same number, once as a bigint', () => {
    const rows = rowsOf([resource('a', 2 ** 53), resource('b', 2n ** 53n), resource('c', 2 ** 53)], 'value');
    expect(keys(rows)).toEqual(['a', 'b', 'c']);
    rows.apply(new Map([['b', undefined]]), 1, none);
    expect(keys(rows)).toEqual(['a', 'c']);
  });

  it('sort revisions that are too large for a number', () => {
    const rows = rowsOf([resource('a', 0, '9007199254740994'), resource('b', 0, '9007199254740993'), resource('c', 0, '9')], 'revision');
    expect(keys(rows)).toEqual(['c', 'b', 'a']);
  });

  it('are filtered by text in the key or anywhere in the value', () => {
    const rows = rowsOf(
      [resource('Apple', 1), resource('b', { deep: ['an apple'] }), resource('c', 'pear'), resource('d', { apple: 1 })],
      'key',
      'apple',
    );
    expect(keys(rows)).toEqual(['Apple', 'b']);
    expect([rows.matching, rows.total]).toEqual([2, 4]);
  });

  it('appear and disappear as they match the filter', () => {
    const rows = rowsOf([resource('a', 'x'), resource('b', 'y')], 'key', 'x');
    rows.apply(
      new Map([
        ['a', resource('a', 'y')],
        ['b', resource('b', 'x')],
      ]),
      1,
      none,
    );
    expect(keys(rows)).toEqual(['b']);
  });

  it('stay for a moment when they are deleted on the screen', () => {
    const rows = rowsOf([resource('a', 1), resource('b', 1), resource('c', 1)]);
    rows.apply(
      new Map([
        ['a', undefined],
        ['b', undefined],
      ]),
      1000,
      new Set(['b']),
    );
    expect(keys(rows)).toEqual(['b', 'c']);
    expect(rows.matching).toBe(1);
    expect(rows.removeFaded(1000 + fadeMs - 1)).toBe(1000 + fadeMs);
    expect(rows.removeFaded(1000 + fadeMs)).toBe(Infinity);
    expect(keys(rows)).toEqual(['c']);
  });

  it('can be sampled evenly, with a filter, and while all of them fade', () => {
    const all = Array.from({ length: 10 }, (_, i) => resource(`k${i}`, i));
    const rows = rowsOf(all);
    const sampled = () => rows.sample(4).map(({ value }) => value);
    expect(sampled()).toEqual([0, 3, 6, 9]);
    arrange(rows, 'key', 'k3');
    expect(sampled()).toEqual([0, 3, 6, 9]);
    arrange(rows, 'key', '');
    rows.apply(new Map(all.map(({ key }) => [key, undefined])), 1, new Set(all.map(({ key }) => key)));
    expect(rows.sample(100)).toHaveLength(10);
  });

  it('occur once when they come back before they have faded', () => {
    const rows = rowsOf([resource('a', 1)]);
    rows.apply(new Map([['a', undefined]]), 1000, new Set(['a']));
    rows.apply(new Map([['a', resource('a', 2)]]), 1001, new Set(['a']));
    expect(rows.shown).toMatchObject([{ key: 'a', createdAt: 1001, deletedAt: 0 }]);
    expect(rows.removeFaded(9999)).toBe(Infinity);
    expect(keys(rows)).toEqual(['a']);
  });

  it('are the same object while they stay in their place', () => {
    const rows = rowsOf([resource('a', { n: 1, m: 1 })], 'n');
    const [before] = rows.shown;
    rows.apply(new Map([['a', resource('a', { n: 1, m: 2 })]]), 1, none);
    expect(rows.shown[0]).toBe(before);
    expect(before!.resource.value).toEqual({ n: 1, m: 2 });
  });
});

// After any changes and arrangements, the rows are those that sorting and filtering
// all resources gives.
describe('rows after any changes', () => {
  const key = fc.integer({ min: 0, max: 300 }).map((n) => `k${n}`);
  const value = fc.oneof(
    fc.record({ n: fc.integer({ min: 0, max: 5 }), t: fc.constantFrom('a', 'b', 'ab') }),
    fc.constantFrom<unknown>(null, 'a', 3, {}, { n: 'text' }, { n: null }, { n: true }, { n: [1] }),
  );
  const change = fc.tuple(key, fc.option(value, { nil: undefined }));
  const sort = fc.constantFrom('key', '-key', 'n', '-n', 't', 'revision', 'value');
  const filter = fc.constantFrom('', 'a', '3', 'b', 'k1');
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('apply' as const), changes: fc.array(change, { maxLength: 5 }) }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('apply' as const), changes: fc.array(change, { minLength: 80, maxLength: 400 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('arrange' as const), sort, filter }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace' as const), changes: fc.array(change, { maxLength: 50 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('removeFaded' as const) }) },
  );

  it('equal those of a simple model', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.uniqueArray(key), (steps, visible) => {
        const rows = new Rows();
        const model = new Map<string, Resource>();
        let [sort, filter, revision] = ['key', '', 0];
        const put =
          (target: Map<string, Resource | undefined>) =>
          ([key, value]: [string, unknown]) =>
            target.set(key, value === undefined ? undefined : resource(key, value, String(++revision)));
        for (const step of steps) {
          if (step.kind === 'arrange') arrange(rows, (sort = step.sort), (filter = step.filter));
          if (step.kind === 'removeFaded') rows.removeFaded(Infinity);
          if (step.kind === 'apply') {
            const changes = new Map<string, Resource | undefined>();
            step.changes.forEach(put(changes));
            rows.apply(changes, 1, new Set(visible));
            for (const [key, resource] of changes) resource ? model.set(key, resource) : model.delete(key);
          }
          if (step.kind === 'replace') {
            model.clear();
            step.changes.filter(([, value]) => value !== undefined).forEach(put(model as Map<string, Resource | undefined>));
            arrange(rows, sort, filter, new Map(model));
          }
          const there = rows.shown.filter(({ deletedAt }) => deletedAt === 0);
          expect(there.map(({ key, resource }) => [key, resource])).toEqual(plain(model, sort, filter));
          expect(rows.total).toBe(model.size);
          expect(rows.matching).toBe(there.length);
          expect(rows.shown.every(({ key, deletedAt }) => deletedAt === 0 || visible.includes(key))).toBe(true);
          for (const [i, { key, deletedAt }] of rows.shown.entries()) if (deletedAt === 0) expect(rows.indexOf(key)).toBe(i);
        }
      }),
      { numRuns: 60 },
    );
  });

  function plain(model: Map<string, Resource>, sortText: string, filterText: string): unknown {
    const sort = parseSort(sortText);
    const rank = ranker(sort);
    const filter = parseFilter(filterText);
    return [...model]
      .filter(([, resource]) => !filter || filter(resource))
      .map(([key, resource]) => ({ key, resource, rank: rank(resource), listed: true, createdAt: 0, deletedAt: 0 }))
      .sort(comparator(sort))
      .map(({ key, resource }) => [key, resource]);
  }
});
