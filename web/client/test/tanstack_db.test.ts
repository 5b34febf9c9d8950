import { type Collection, createCollection, createLiveQueryCollection, gt } from '@tanstack/db';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { http } from '../src/http.js';
import type { Resource } from '../src/resource.js';
import { type Writes, watchCollectionOptions } from '../src/tanstack_db.js';
import { Counted, remove, upsert } from './line.js';

let notes: Counted;
let collection: Collection<Resource<number>, string>;
let made = false;

const values = () => Object.fromEntries([...collection.entries()].map(([key, { value }]) => [key, value]));
const plain = (entries: Iterable<[string, Resource<number>]>) =>
  [...entries].map(([key, { revision, value }]) => `${key}=${value}@${revision}`).sort();
const settle = () => new Promise((resolve) => setImmediate(resolve));
const make = (writes?: Writes<number>) => {
  collection = createCollection(watchCollectionOptions({ store: notes, startSync: true, ...(writes && { writes }) }));
  made = true;
  return collection;
};

beforeEach(() => {
  notes = new Counted();
  made = false;
});

afterEach(async () => {
  if (made) await collection.cleanup(); // some tests make collections of their own
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

describe('what the gateway sends', () => {
  test('is ready with the first state, and then follows', async () => {
    make();
    expect(collection.status).toBe('loading');
    await notes.snapshot(5, { a: 1, b: 2 });
    expect(collection.status).toBe('ready');
    expect(values()).toEqual({ a: 1, b: 2 });
    notes.line.send('w@e-7', upsert('a', 6, 10), remove('b', 7), upsert('c', 7, 3));
    expect(values()).toEqual({ a: 10, c: 3 });
    expect(collection.get('a')).toMatchObject({ key: 'a', revision: '6', value: 10 });
  });

  test('is never shown in halves, nor is a new snapshot', async () => {
    make();
    await notes.snapshot(5, { a: 1, b: -1 });
    const sums: number[] = [];
    collection.subscribeChanges(() => sums.push(Object.values(values()).reduce((all, value) => all + value, 0)));
    for (let revision = 6; revision < 20; revision++)
      notes.line.send(`w@e-${revision}`, upsert('a', revision, revision), upsert('b', revision, -revision));
    notes.line.snapshot(30, { b: -7, d: 7 }, 'behind');
    notes.line.snapshot(31, {}, 'behind');
    expect(values()).toEqual({});
    expect(new Set(sums)).toEqual(new Set([0]));
    expect(sums.length).toBeGreaterThan(14);
  });

  test('reaches live queries', async () => {
    make();
    await notes.snapshot(5, { a: 1, b: 20 });
    const large = createLiveQueryCollection((q) => q.from({ note: collection }).where(({ note }) => gt(note.value, 10)));
    await large.preload();
    expect(large.toArray.map(({ key }) => key)).toEqual(['b']);
    notes.line.send('w@e-6', upsert('a', 6, 30));
    notes.line.send('w@e-7', remove('b', 7));
    expect(large.toArray.map(({ key }) => key)).toEqual(['a']);
    await large.cleanup();
  });

  test('is an error if the watch is closed before the first state', async () => {
    make();
    await notes.line.opened;
    notes.tide.close();
    expect(collection.status).toBe('error');
  });

  test('is there again after the collection was cleaned up', async () => {
    make();
    await notes.snapshot(5, { a: 1 });
    await collection.cleanup();
    expect(notes.listeners).toBe(0);
    notes.line.send('w@e-6', upsert('b', 6, 2));
    collection.startSyncImmediate();
    expect(values()).toEqual({ a: 1, b: 2 });
  });

  test('is in the collection what it is in the store, whatever comes', async () => {
    const step = fc.oneof(
      fc.record({ put: fc.constantFrom('a', 'b', '__proto__', 'constructor'), value: fc.integer() }),
      fc.record({ remove: fc.constantFrom('a', 'b', '__proto__', 'constructor') }),
      fc.record({ snapshot: fc.dictionary(fc.constantFrom('a', 'c', 'toString'), fc.integer()) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 20 }), async (batches) => {
        const own = new Counted();
        const made = createCollection(watchCollectionOptions<number>({ store: own, startSync: true }));
        await own.snapshot(1, { a: 1 });
        let revision = 1;
        for (const batch of batches) {
          const events = [];
          for (const one of batch) {
            revision++;
            if ('put' in one) events.push(upsert(one.put, revision, one.value));
            else if ('remove' in one) events.push(remove(one.remove, revision));
            else own.line.snapshot(revision, one.snapshot, 'behind');
          }
          if (events.length > 0) own.line.send(`w@e-${revision}`, ...events);
          expect(plain(made.entries())).toEqual(plain(own.view.resources));
        }
        await made.cleanup();
        own.tide.close();
      }),
      { numRuns: 100 },
    );
  });
});

/** A gateway that answers writes when it is told to, and then sends them. */
class Gateway implements Writes<number> {
  readonly #asked: Array<{ run: () => void; fail: (error: Error) => void }> = [];
  readonly log: string[] = [];
  revision = 5;

  put(_watch: string, { key }: Resource<number>, value: number, { revision }: { revision: string | null }) {
    this.log.push(`put ${key}=${value} at ${revision}`);
    return this.#ask(() => ({ revision: String(++this.revision) }));
  }

  delete(_watch: string, { key }: Resource<number>, { revision }: { revision: string }) {
    this.log.push(`delete ${key} at ${revision}`);
    return this.#ask(() => void ++this.revision);
  }

  #ask<T>(answer: () => T): Promise<T> {
    return new Promise((resolve, reject) => this.#asked.push({ run: () => resolve(answer()), fail: reject }));
  }

  async answer(): Promise<void> {
    this.#asked.shift()!.run();
    await settle();
  }

  async refuse(): Promise<void> {
    this.#asked.shift()!.fail(new Error('conflict'));
    await settle();
  }
}

describe('what the page writes', () => {
  let gateway: Gateway;
  beforeEach(async () => {
    gateway = new Gateway();
    make(gateway);
    await notes.snapshot(5, { a: 1 });
  });

  test('is shown at once, is a compare-and-set, and is settled when the stream has it', async () => {
    const change = collection.update('a', (draft) => {
      draft.value = 2;
    });
    expect(values()).toEqual({ a: 2 });
    await settle();
    expect(gateway.log).toEqual(['put a=2 at 5']);
    await gateway.answer();
    expect([values(), change.state]).toEqual([{ a: 2 }, 'persisting']);
    notes.line.send('w@e-6', upsert('a', 6, 2));
    await change.isPersisted.promise;
    expect(collection.get('a')).toMatchObject({ key: 'a', revision: '6', value: 2 });
  });

  test('must not exist if it is inserted, and must not have changed if it is deleted', async () => {
    const inserted = collection.insert({ key: 'b', revision: '', value: 2 });
    await settle();
    await gateway.answer();
    notes.line.send('w@e-6', upsert('b', 6, 2));
    await inserted.isPersisted.promise;
    const deleted = collection.delete('b');
    await settle();
    await gateway.answer();
    expect(values()).toEqual({ a: 1 });
    notes.line.send('w@e-7', remove('b', 7));
    await deleted.isPersisted.promise;
    expect(values()).toEqual({ a: 1 });
    expect(gateway.log).toEqual(['put b=2 at null', 'delete b at 6']);
  });

  test('is taken back at a conflict, and the other value is shown', async () => {
    const change = collection.update('a', (draft) => {
      draft.value = 2;
    });
    change.isPersisted.promise.catch(() => {});
    notes.line.send('w@e-6', upsert('a', 6, 100));
    await settle();
    await gateway.refuse();
    await expect(change.isPersisted.promise).rejects.toThrow('conflict');
    expect(values()).toEqual({ a: 100 });
  });

  test('follows on the write before it, which the stream has not brought yet', async () => {
    const one = collection.update('a', (draft) => {
      draft.value = 2;
    });
    const other = collection.update('a', (draft) => {
      draft.value = 3;
    });
    await settle();
    expect(gateway.log).toEqual(['put a=2 at 5']);
    await gateway.answer();
    expect(gateway.log).toEqual(['put a=2 at 5', 'put a=3 at 6']);
    await gateway.answer();
    notes.line.send('w@e-7', upsert('a', 7, 3));
    await Promise.all([one.isPersisted.promise, other.isPersisted.promise]);
    expect(collection.get('a')).toMatchObject({ key: 'a', revision: '7', value: 3 });
  });

  test('is settled by a new snapshot, and by the end of the watch', async () => {
    const one = collection.update('a', (draft) => {
      draft.value = 2;
    });
    await settle();
    await gateway.answer();
    notes.line.snapshot(3, { a: 2 }, 'behind'); // of an upstream that was restored
    await one.isPersisted.promise;
    const other = collection.delete('a');
    await settle();
    await gateway.answer();
    notes.tide.close();
    await other.isPersisted.promise;
  });

  test('goes over the requests of http as they are', async () => {
    await collection.cleanup();
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (url: string, { method, headers, body = '' }: RequestInit) => {
      asked.push(`${method} ${url} ${new Headers(headers).get(method === 'PUT' ? 'If-Match' : 'If-None-Match') ?? ''} ${body}`.trim());
      return Response.json({ key: 'a', revision: '6', value: 2 });
    });
    try {
      make(http<{ w: number }>('http://gateway.test/'));
      const change = collection.update('a', (draft) => {
        draft.value = 2;
      });
      await settle();
      notes.line.send('w@e-6', upsert('a', 6, 2));
      await change.isPersisted.promise;
    } finally {
      vi.unstubAllGlobals();
    }
    expect(asked).toEqual(['PUT http://gateway.test/v1/watches/w/resources/a "5" 2']);
    expect(values()).toEqual({ a: 2 });
  });
});
