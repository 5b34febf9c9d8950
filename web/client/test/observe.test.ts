import fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { changes, onChange, onKey, ready } from '../src/observe.js';
import type { Resource } from '../src/resource.js';
import { end, Feed, gone, reset, up } from './feed.js';

let f: Feed<number>;

beforeEach(() => {
  f = new Feed<number>().open();
});

const first = () => f.snapshot({ a: 1, b: 2 });

describe('ready', () => {
  test('resolves at the first consistent state', async () => {
    const waiting = ready(f.store);
    f.feed(reset, up('a', 1, 1));
    first();
    expect((await waiting).resources.size).toBe(2);
    expect(await ready(f.store)).toBe(f.store.view);
  });

  test('rejects when the store is closed, with the error if there is one', async () => {
    const waiting = ready(f.store);
    const refused = new Error('refused');
    f.close(refused);
    await expect(waiting).rejects.toBe(refused);
    f = new Feed<number>();
    f.close();
    await expect(ready(f.store)).rejects.toThrow('the store is closed');
  });

  test('ends with its signal, and leaves no listener', async () => {
    const stop = new AbortController();
    const unsubscribe = vi.fn();
    const { subscribe } = f.store;
    f.store.subscribe = (run) => {
      const real = subscribe.call(f.store, run);
      return () => {
        unsubscribe();
        real();
      };
    };
    const waiting = ready(f.store, { signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(ready(f.store, { signal: stop.signal })).rejects.toThrow('enough');
    first();
    await ready(f.store);
    expect(unsubscribe).toHaveBeenCalledTimes(2);
  });

  test('may wait until the store is in sync', async () => {
    let done = false;
    const waiting = ready(f.store, { inSync: true }).then(() => {
      done = true;
    });
    f.feed(reset, { type: 'status', watch: 'w', state: 'stale' }, up('a', 1, 1), end(1));
    await Promise.resolve();
    expect([done, (await ready(f.store)).state]).toEqual([false, 'stale']);
    f.feed({ type: 'status', watch: 'w', state: 'in_sync' }, { type: 'bookmark', watch: 'w', revision: '1' });
    await waiting;
  });
});

describe('changes', () => {
  test('begins with the current view, and conflates those that a slow loop misses', async () => {
    first();
    const all = changes(f.store);
    const next = async () => {
      const { value } = await all.next();
      return value && [value.replaced, [...value.keys].join(), value.view.revision];
    };
    expect(await next()).toEqual([false, 'a,b', '2']);
    const waiting = next();
    f.feed(up('a', 3, 3));
    expect(await waiting).toEqual([false, 'a', '3']);
    for (let i = 4; i < 100; i++) f.feed(up(`k${i % 2}`, i, i));
    expect(await next()).toEqual([false, 'k0,k1', '99']);
    first();
    f.feed(up('z', 9, 9));
    expect(await next()).toEqual([true, '', '9']);
    f.close();
    expect(await all.next()).toMatchObject({ done: false, value: { view: { state: 'closed' } } });
    expect(await all.next()).toEqual({ done: true, value: undefined });
  });

  test('throws the error of the store, and the reason of its signal', async () => {
    const stop = new AbortController();
    const stopped = changes(f.store, { signal: stop.signal });
    await stopped.next();
    const waiting = expect(stopped.next()).rejects.toThrow('enough');
    stop.abort(new Error('enough'));
    await waiting;
    const all = changes(f.store);
    await all.next();
    f.close(new Error('refused'));
    await expect(all.next()).rejects.toThrow('refused');
  });

  test('ends its subscription when the loop ends', async () => {
    const size = () => (f.store.subscribe as unknown as { left: number }).left;
    const { subscribe } = f.store;
    const counted = Object.assign(
      (run: Parameters<typeof subscribe>[0]) => {
        counted.left++;
        const end = subscribe.call(f.store, run);
        return () => {
          counted.left--;
          end();
        };
      },
      { left: 0 },
    );
    f.store.subscribe = counted;
    for await (const _ of changes(f.store)) break;
    expect(size()).toBe(0);
  });
});

type Call = readonly [kind: string, key: string, before: number | undefined, after: number | undefined];

function recorded(calls: Call[]) {
  return {
    onAdd: ({ value }: Resource<number>, key: string) => void calls.push(['add', key, undefined, value]),
    onUpdate: (a: Resource<number>, b: Resource<number>, key: string) => void calls.push(['update', key, a.value, b.value]),
    onDelete: ({ value }: Resource<number>, key: string) => void calls.push(['delete', key, value, undefined]),
  };
}

describe('onChange', () => {
  test('tells what is added, updated and deleted, with the values before, and after a reset only the difference', () => {
    const calls: Call[] = [];
    first();
    const stop = onChange(f.store, recorded(calls));
    f.feed(up('a', 3, 10), gone('b', 4), up('c', 5, 3));
    f.feed(reset, up('a', 3, 10), up('c', 6, 30), up('d', 7, 4), end(7));
    expect(calls).toEqual([
      ['add', 'a', undefined, 1],
      ['add', 'b', undefined, 2],
      ['update', 'a', 1, 10],
      ['delete', 'b', 2, undefined],
      ['add', 'c', undefined, 3],
      ['update', 'c', 3, 30],
      ['add', 'd', undefined, 4],
    ]);
    stop();
    f.feed(gone('a', 8));
    expect(calls).toHaveLength(7);
  });

  test('keeps a mirror exact for any history', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const change = fc.record({ key, value: fc.option(fc.nat(3)) });
    const batch = fc.record({ replace: fc.boolean(), changes: fc.array(change, { maxLength: 5 }) });
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 12 }), (batches) => {
        const all = new Feed<number>().open().snapshot({});
        const mirror = new Map<string, number>();
        onChange(all.store, {
          onAdd({ value }, key) {
            expect(mirror.has(key)).toBe(false);
            mirror.set(key, value);
          },
          onUpdate(before, after, key) {
            expect(mirror.get(key)).toBe(before.value);
            mirror.set(key, after.value);
          },
          onDelete({ value }, key) {
            expect(mirror.get(key)).toBe(value);
            mirror.delete(key);
          },
        });
        let revision = 10;
        for (const { replace, changes } of batches) {
          const events = changes.map(({ key, value }) => (value === null ? gone(key, ++revision) : up(key, ++revision, value)));
          if (replace) all.feed(reset, ...events, end(++revision));
          else if (events.length > 0) all.feed(...events);
          expect(mirror).toEqual(new Map([...all.store.resources].map(([key, { value }]) => [key, value])));
        }
      }),
    );
  });
});

describe('onKey', () => {
  test('costs time for the changed keys, however many are subscribed to', () => {
    f.snapshot(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i])));
    let calls = 0;
    let reads = 0;
    const { get } = Map.prototype;
    for (let i = 0; i < 10_000; i++) onKey(f.store, `k${i}`, () => void calls++);
    expect(calls).toBe(10_000); // one each, at once
    calls = 0;
    const spy = vi.spyOn(Map.prototype, 'get').mockImplementation(function (this: Map<unknown, unknown>, key) {
      reads++;
      return get.call(this, key);
    });
    f.feed(up('k7', 20_000, 0), gone('k8', 20_001), up('other', 20_002, 1));
    spy.mockRestore();
    expect(calls).toBe(2);
    expect(reads).toBeLessThan(50);
  });

  test('has the current resource at once, and changes of its key only', () => {
    first();
    const seen: unknown[] = [];
    const stop = onKey(f.store, 'a', (resource) => void seen.push(resource?.value));
    f.feed(up('b', 3, 3));
    f.feed(up('a', 4, 4));
    f.stores.disconnect({ state: 'offline', since: 0, reason: '' });
    f.open().feed(reset, up('a', 4, 4), end(4)); // the same
    f.feed(gone('a', 5));
    f.feed(up('a', 6, 6));
    f.open().feed(reset, end(7));
    stop();
    f.feed(up('a', 8, 8));
    expect(seen).toEqual([1, 4, undefined, 6, undefined]);
  });

  test('ends its subscription to the store with the last one, and begins again', () => {
    first();
    const seen: string[] = [];
    const one = onKey(f.store, 'a', (resource) => void seen.push(`one ${resource?.value}`));
    const two = onKey(f.store, 'a', (resource) => void seen.push(`two ${resource?.value}`));
    one();
    one();
    f.feed(up('a', 3, 3));
    two();
    f.feed(up('a', 4, 4));
    onKey(f.store, 'a', (resource) => void seen.push(`three ${resource?.value}`));
    f.feed(up('a', 5, 5));
    expect(seen).toEqual(['one 1', 'two 1', 'two 3', 'three 4', 'three 5']);
  });

  test('calls nobody who has ended the subscription, even in a call for the same change', () => {
    first();
    const seen: unknown[] = [];
    onKey(f.store, 'a', (resource) => void (resource?.value === 3 && stop()));
    const stop = onKey(f.store, 'a', (resource) => void seen.push(resource?.value));
    f.feed(up('a', 3, 3));
    expect(seen).toEqual([1]);
  });

  test('the first call may subscribe to the same key, and all hear of the next change', () => {
    first();
    const seen: string[] = [];
    let nested = false;
    onKey(f.store, 'a', (resource) => {
      seen.push(`outer ${resource?.value}`);
      if (!nested) onKey(f.store, 'a', (resource) => void seen.push(`inner ${resource?.value}`));
      nested = true;
    });
    f.feed(up('a', 3, 3));
    expect(seen.sort()).toEqual(['inner 1', 'inner 3', 'outer 1', 'outer 3']);
  });

  test('a change that the first call makes is heard of', () => {
    first();
    const seen: unknown[] = [];
    onKey(f.store, 'a', (resource) => {
      seen.push(resource?.value);
      if (resource?.value === 1) f.feed(up('a', 3, 3));
    });
    expect(seen).toEqual([1, 3]);
  });

  test('a first call that throws leaves no subscription', () => {
    first();
    const run = vi.fn(() => {
      throw new Error('broken');
    });
    expect(() => onKey(f.store, 'a', run)).toThrow('broken');
    f.feed(up('a', 3, 3));
    expect(run).toHaveBeenCalledTimes(1);
  });
});
