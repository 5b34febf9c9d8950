import * as v from 'valibot';
import { beforeEach, describe, expect, expectTypeOf, test, vi } from 'vitest';
import { z } from 'zod';
import { optimistic } from '../src/optimistic.js';
import { query } from '../src/query.js';
import { InvalidValueError, type StandardSchema, type Validated, validated } from '../src/validate.js';
import { end, Feed, gone, reset, up } from './feed.js';

let f: Feed;

beforeEach(() => {
  f = new Feed().open().snapshot({ a: { at: '2026-01-02', n: 1 }, b: { n: 'two' }, c: { at: '2026-01-03', n: 3 } });
});

const schemas = [
  ['zod', z.object({ at: z.string().transform((text) => new Date(text)), n: z.number() })],
  [
    'valibot',
    v.object({
      at: v.pipe(
        v.string(),
        v.transform((text) => new Date(text)),
      ),
      n: v.number(),
    }),
  ],
] as const;

const rows = (store: Validated<{ n: number; at: Date }>) =>
  [...store.view.resources].map(([key, { value }]) => `${key}=${value.n}@${value.at.getFullYear()}`);

describe.each(schemas)('a schema of %s', (_, schema) => {
  test('drops what does not fit, and says what is wrong', () => {
    const issues: unknown[] = [];
    const store = validated(f.store, schema, { onIssues: ({ key }, [issue]) => void issues.push([key, typeof issue?.message]) });
    expect([rows(store), issues]).toEqual([['a=1@2026', 'c=3@2026'], [['b', 'string']]]);
    const seen: string[] = [];
    store.subscribe(({ revision }, { keys, replaced }) => void seen.push(`${revision} ${replaced} ${[...keys]}`));
    f.feed(up('b', 4, { at: '2027-01-01', n: 2 }), up('a', 5, 'text'), gone('c', 6));
    expect(rows(store)).toEqual(['b=2@2027']);
    f.open().feed(reset, up('z', 7, { at: '2028-01-01', n: 9 }), end(7));
    expect([rows(store), seen.at(-1), store.view.state]).toEqual([['z=9@2028'], '7 true ', 'in_sync']);
    expect(seen.slice(0, 2)).toEqual(['3 false a,c', '6 false b,a,c']);
  });

  test('keeps it, or closes the store at the last state that fits', () => {
    const kept = validated(f.store, schema, { onInvalid: 'keep' });
    expect(kept.view.resources.get('b')?.value).toEqual({ n: 'two' });
    f.feed(gone('b', 4));
    const store = validated(f.store, schema, { onInvalid: 'close' });
    const calls = vi.fn();
    store.subscribe(calls);
    f.feed(up('d', 5, { at: '2026-05-05', n: 5 }), up('a', 6, { n: 'no' }));
    f.feed(up('a', 7, { at: '2026-05-05', n: 7 }));
    expect([rows(store), store.view.state, calls.mock.calls.length]).toEqual([['a=1@2026', 'c=3@2026'], 'closed', 2]);
    expect(store.view.error).toBeInstanceOf(InvalidValueError);
    expect(store.view).toMatchObject({ revision: '4', reason: expect.stringMatching(/^the value of "a" does not fit its schema: at: /) });
  });
});

test('the types are those of the schema', () => {
  const zod = validated(f.store, z.object({ n: z.number() }));
  const valibot = validated(f.store, v.object({ n: v.number() }));
  expectTypeOf(zod).toEqualTypeOf<Validated<{ n: number }>>();
  expectTypeOf(valibot).toEqualTypeOf<Validated<{ n: number }>>();
  expectTypeOf(validated(f.store, z.string(), { onInvalid: 'keep' })).toEqualTypeOf<Validated<unknown>>();
});

test('onIssues that throws changes nothing', () => {
  const thrown: unknown[] = [];
  vi.stubGlobal('queueMicrotask', (run: () => void) => {
    try {
      run();
    } catch (error) {
      thrown.push(error);
    }
  });
  const onIssues = () => {
    throw new Error('a mistake of the page');
  };
  const store = validated(f.store, schemas[0][1], { onIssues });
  vi.unstubAllGlobals();
  expect([rows(store), store.view.state, thrown.length]).toEqual([['a=1@2026', 'c=3@2026'], 'in_sync', 1]);
});

test.each([
  [
    'valibot',
    v.pipeAsync(
      v.any(),
      v.checkAsync(async () => true),
    ),
  ],
  ['zod', z.object({ n: z.number() }).refine(async () => true)],
])('an asynchronous schema of %s closes the store, and none of its values is shown', async (vendor, schema) => {
  const store = validated(f.store, schema as StandardSchema);
  const seen: number[] = [];
  store.subscribe(({ resources }) => void seen.push(resources.size));
  await new Promise((resolve) => setTimeout(resolve));
  expect(store.view).toMatchObject({ state: 'closed', reason: expect.stringContaining(`of ${vendor}, is asynchronous`) });
  expect([store.view.error?.constructor, seen]).toEqual([TypeError, [0, 0]]);
});

describe.each([
  ['zod', z.any().transform(({ text }) => text.toUpperCase())],
  [
    'valibot',
    v.pipe(
      v.any(),
      v.transform(({ text }) => text.toUpperCase()),
    ),
  ],
])('a transformation of %s that throws', (_, schema) => {
  const settled = () => new Promise((resolve) => setTimeout(resolve));
  const texts = (store: Validated<unknown>) => [...store.view.resources].map(([key, { value }]) => `${key}=${value}`).join();

  test('concerns its value alone', async () => {
    const feed = new Feed().open().snapshot({ a: { text: 'a' }, bad: null });
    const issues: string[] = [];
    const store = validated(feed.store, schema, { onIssues: ({ key }, [issue]) => void issues.push(`${key}: ${issue?.message}`) });
    feed.feed(up('worse', 3, {}), up('b', 4, { text: 'b' }));
    await settled();
    expect([texts(store), store.view.state]).toEqual(['a=A,b=B', 'in_sync']);
    expect(issues.sort()).toEqual([expect.stringMatching(/^bad: the schema threw: /), expect.stringMatching(/^worse: the schema threw: /)]);
    feed.feed(up('bad', 5, { text: 'good' }));
    expect(texts(store)).toBe('a=A,b=B,bad=GOOD');
  });

  test('closes the store if its value is to', async () => {
    const feed = new Feed().open().snapshot({ a: { text: 'a' } });
    const store = validated(feed.store, schema, { onInvalid: 'close' });
    feed.feed(up('bad', 5, null));
    await settled();
    expect([texts(store), store.view.state, store.view.error?.constructor]).toEqual(['a=A', 'closed', InvalidValueError]);
  });
});

test('queries and overlays take it', async () => {
  const store = validated(f.store, schemas[0][1]);
  const live = query(store, { compare: (a, b) => b.value.n - a.value.n });
  expect(live.view.rows.at(0)?.value.at.getFullYear()).toBe(2026);
  const overlay = optimistic(store, { put: () => new Promise(() => {}), delete: () => new Promise(() => {}) });
  void overlay.delete('c');
  expect(query(overlay).view.rows.size).toBe(1);
});

test('it is as fresh as the store, and ends when it is closed', () => {
  const store = validated(f.store, schemas[0][1]);
  f.stores.disconnect({ state: 'offline', since: 5, reason: 'lost' });
  expect(store.view).toMatchObject({ state: 'offline', reason: 'lost' });
  store.close();
  f.open().feed(end(3));
  expect(store.view).toMatchObject({ state: 'closed', revision: '3' });
});
