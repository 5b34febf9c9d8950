import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { groupBy, type Query, query } from '../src/query.js';
import type { Resource } from '../src/resource.js';
import { SortedList } from '../src/sorted_list.js';
import { validated } from '../src/validate.js';
import { end, Feed, gone, reset, up } from './feed.js';

interface Pod {
  readonly node: string;
  readonly cpu: number;
}

const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
const pod = fc.record({ node: fc.constantFrom('n1', 'n2', 'n3'), cpu: fc.nat(3) });
const change = fc.record({ key: fc.constantFrom(...keys), value: fc.option(pod) });
const batches = fc.array(fc.record({ replace: fc.boolean(), changes: fc.array(change, { maxLength: 6 }) }), { maxLength: 15 });

function eachState(all: typeof batches extends fc.Arbitrary<infer A> ? A : never, feed: Feed<Pod>, check: () => void): void {
  let revision = 10;
  for (const { replace, changes } of all) {
    const events = changes.map(({ key, value }) => (value ? up(key, ++revision, value) : gone(key, ++revision)));
    if (replace) feed.feed(reset, ...events, end(++revision));
    else if (events.length > 0) feed.feed(...events);
    check();
  }
}

const busy = ({ value }: Resource<Pod>) => value.cpu > 0;
const byCpu = (a: Resource<Pod>, b: Resource<Pod>) => b.value.cpu - a.value.cpu;

test('a query has what filtering and sorting everything has', () => {
  fc.assert(
    fc.property(batches, (all) => {
      const f = new Feed<Pod>().open().snapshot({});
      const live = query(f.store, { filter: busy, compare: byCpu });
      const mirror = new Map<string, Resource<Pod>>();
      live.subscribe(({ rows }, { replaced, keys }) => {
        // The changes name each row that is another one.
        const now = new Map([...rows].map((resource) => [resource.key, resource]));
        if (!replaced) for (const key of keys) now.has(key) ? mirror.set(key, now.get(key)!) : mirror.delete(key);
        else {
          mirror.clear();
          for (const [key, resource] of now) mirror.set(key, resource);
        }
        expect(mirror).toEqual(now);
      });
      eachState(all, f, () => {
        const expected = [...f.store.resources.values()].filter(busy).sort((a, b) => byCpu(a, b) || (a.key < b.key ? -1 : 1));
        const { rows } = live.view;
        expect([...rows]).toEqual(expected);
        expect([rows.size, rows.at(0), rows.at(rows.size), rows.slice(1, 3)]).toEqual([
          expected.length,
          expected[0],
          undefined,
          expected.slice(1, 3),
        ]);
      });
      live.close();
      const { view } = live;
      f.feed(up('z', 1_000, { node: 'n1', cpu: 9 }));
      expect(live.view).toBe(view);
    }),
    { numRuns: 500 },
  );
});

test('an index has what grouping everything has, and another map for a group that has changed only', () => {
  fc.assert(
    fc.property(batches, (all) => {
      const f = new Feed<Pod>().open().snapshot({});
      const by = ({ value }: Resource<Pod>) => (value.cpu === 3 ? undefined : value.cpu === 2 ? [value.node, 'all'] : value.node);
      const index = groupBy(f.store, by);
      let before = new Map(index.view.groups);
      let changed: ReadonlySet<string> = new Set();
      index.subscribe((_, groups) => {
        changed = groups;
      });
      eachState(all, f, () => {
        const expected = new Map<string, Map<string, Resource<Pod>>>();
        for (const resource of f.store.resources.values()) {
          for (const group of [by(resource) ?? []].flat()) {
            expected.set(group, (expected.get(group) ?? new Map()).set(resource.key, resource));
          }
        }
        const now = new Map([...index.view.groups].map(([group, members]) => [group, new Map(members)]));
        expect(now).toEqual(expected);
        for (const [group, members] of index.view.groups) if (!changed.has(group)) expect(members).toBe(before.get(group));
        before = new Map(index.view.groups);
      });
    }),
    { numRuns: 500 },
  );
});

test('a view is another object for each change, and its rows only if a row has changed', () => {
  const f = new Feed<Pod>().open().snapshot({ a: { node: 'n1', cpu: 1 }, b: { node: 'n1', cpu: 0 } });
  const live = query(f.store, { filter: busy });
  const calls = vi.fn();
  live.subscribe(calls);
  const { view } = live;
  f.feed(up('b', 5, { node: 'n2', cpu: 0 }));
  expect(live.view.rows).toBe(view.rows);
  expect(live.view).toMatchObject({ state: 'in_sync', revision: '5' });
  f.stores.disconnect({ state: 'offline', since: 0, reason: 'lost' });
  expect(live.view).toMatchObject({ state: 'offline', reason: 'lost' });
  f.open().feed(end(5));
  f.feed(up('b', 6, { node: 'n2', cpu: 1 }));
  expect(live.view.rows).not.toBe(view.rows);
  expect([...calls.mock.lastCall![1].keys]).toEqual(['b']);
});

test('a filter that throws selects nothing, and the others go on', async () => {
  const thrown = vi.fn();
  vi.stubGlobal('queueMicrotask', (run: () => void) => {
    try {
      run();
    } catch (error) {
      thrown(error);
    }
  });
  const f = new Feed<Pod | null>().open().snapshot({ a: null, b: { node: 'n', cpu: 1 } });
  const live = query(f.store, { filter: ({ value }) => value!.cpu > 0 });
  const index = groupBy(f.store, ({ value }) => value!.node);
  expect([live.view.rows.at(0)?.key, [...index.view.groups.keys()], thrown.mock.calls.length]).toEqual(['b', ['n'], 2]);
  vi.unstubAllGlobals();
});

test('an update compares with the logarithm of the number of rows', () => {
  const n = 100_000;
  let compared = 0;
  const list = new SortedList<{ at: number }>((a, b) => {
    compared++;
    return a.at - b.at;
  });
  const entries = Array.from({ length: n }, (_, i) => ({ at: i }));
  list.fill([...entries]);
  compared = 0;
  for (let i = 0; i < 1_000; i++) {
    list.remove(entries[i * 97]!);
    list.insert(entries[i * 97]!);
  }
  expect(compared / 2_000).toBeLessThan(2 + 2 * Math.log2(n));
  expect([...list].every(({ at }, i) => at === i)).toBe(true);
});

test('a sorted list is one whatever is done to it, also with a comparison that contradicts itself', () => {
  const step = fc.record({ insert: fc.boolean(), at: fc.nat(5_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 3_000, size: 'max' }), fc.boolean(), (steps, contradicts) => {
      const list = new SortedList<{ at: number }>((a, b) => (contradicts && a.at % 7 === 0 ? Number.NaN : a.at - b.at));
      const all: Array<{ at: number }> = [];
      for (const { insert, at } of steps) {
        if (insert) {
          const entry = { at: at + all.length / 1e9 };
          all.push(entry);
          list.insert(entry);
        } else if (all.length > 0) list.remove(all.splice(at % all.length, 1)[0]!);
      }
      expect(list.size).toBe(all.length);
      expect(new Set(list)).toEqual(new Set(all));
      if (!contradicts) expect([...list].map(({ at }) => at)).toEqual(all.map(({ at }) => at).sort((a, b) => a - b));
    }),
    { numRuns: 30 },
  );
});

describe('a comparison that throws', () => {
  beforeEach(() => vi.stubGlobal('queueMicrotask', () => {})); // it is reported there
  afterEach(() => void vi.unstubAllGlobals());

  const byCpu = (a: Resource<Pod | null>, b: Resource<Pod | null>) => a.value!.cpu - b.value!.cpu;
  const cpu = (cpu: number): Pod => ({ node: 'n', cpu });
  const keysOf = (live: Query<Pod | null>) => [...live.view.rows].map(({ key }) => key).join();

  test('puts the row last, and loses nothing of the change', () => {
    const f = new Feed<Pod | null>().open().snapshot({ a: cpu(1), b: cpu(2) });
    const live = query(f.store, { compare: byCpu });
    f.feed(up('bad', 6, null), up('low', 6, cpu(0)), up('high', 6, cpu(9)), up('also bad', 6, null));
    expect([keysOf(live), live.view.rows.size]).toEqual(['low,a,b,high,also bad,bad', 6]);
    f.feed(gone('bad', 7), up('a', 7, null));
    expect([keysOf(live), live.view.rows.size]).toEqual(['low,b,high,a,also bad', 5]);
    f.feed(up('a', 8, cpu(3)), up('also bad', 8, cpu(4)));
    expect([keysOf(live), live.view.rows.size]).toEqual(['low,b,a,also bad,high', 5]);
    expect(keysOf(query(f.store, { compare: byCpu }))).toBe(keysOf(live));
  });

  test('for two rows and for neither of them alone counts as equal', () => {
    const f = new Feed<number | bigint>().open().snapshot({ b: 1, a: 2 });
    const live = query<number | bigint>(f.store, { compare: ({ value: a }, { value: b }) => (a as number) - (b as number) });
    f.feed(up('c', 6, 3n), up('d', 6, 4));
    expect(live.view.rows.size).toBe(4);
    f.feed(gone('c', 7));
    expect([...live.view.rows].map(({ key }) => key)).toEqual(['b', 'a', 'd']);
  });
});

test('a change of a list that throws leaves it as it was', () => {
  const list = new SortedList<{ at: number }>((a, b) => {
    if (a.at < 0 || b.at < 0) throw new Error('not a place');
    return a.at - b.at;
  });
  list.fill([{ at: 1 }]);
  expect(() => list.insert({ at: -1 })).toThrow('not a place');
  expect([list.size, [...list]]).toEqual([1, [{ at: 1 }]]);
});

test('what was closed says so, changes no more, and has no new listeners', () => {
  const f = new Feed<Pod>().open().snapshot({ a: { node: 'n1', cpu: 1 } });
  for (const live of [query(f.store), groupBy(f.store, ({ value }) => value.node), validated(f.store, z.any())]) {
    const states: string[] = [];
    live.subscribe(({ state }) => states.push(state));
    live.close();
    live.close();
    const { view } = live;
    f.feed(up('b', 6, { node: 'n1', cpu: 1 }));
    expect([states, live.view === view, view.state, view.revision]).toEqual([['in_sync', 'closed'], true, 'closed', '1']);
    expect(() => live.subscribe(() => {})).toThrow('make another one');
    f.feed(reset, up('a', 1, { node: 'n1', cpu: 1 }), end(1));
  }
});
