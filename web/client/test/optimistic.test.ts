import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ConflictError, http } from '../src/http.js';
import { type Overlay, optimistic } from '../src/optimistic.js';
import type { Event } from '../src/protocol.js';
import type { Resource } from '../src/resource.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { Stores } from '../src/stores.js';

interface Sent {
  readonly method: 'put' | 'delete';
  readonly key: string;
  readonly value?: unknown;
  readonly revision: string | null | undefined;
  answer(result: Resource<number> | boolean): Promise<void>;
  fail(error: Error): Promise<void>;
}

let stores: Stores;
let store: Store<number>;
let sent: Sent[];
let overlay: Overlay<number>;

const settled = () => vi.advanceTimersByTimeAsync(0);

function ask<T>(method: Sent['method'], key: string, revision: string | null | undefined, value?: unknown): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const then = (run: () => void) => {
      run();
      return settled().then(() => {});
    };
    sent.push({
      method,
      key,
      value,
      revision,
      answer: (result) => then(() => resolve(result as T)),
      fail: (error) => then(() => reject(error)),
    });
  });
}

const up = (key: string, revision: number, value: number): Event => ({
  type: 'upsert',
  watch: 'w',
  key,
  revision: String(revision),
  value,
});
const gone = (key: string, revision: number): Event => ({ type: 'delete', watch: 'w', key, revision: String(revision) });
const reset: Event = { type: 'reset', watch: 'w', reason: 'epoch_changed' };
const end = (revision: number) => ({ type: 'end_of_snapshot', watch: 'w', revision: String(revision) }) as Event;
const stored = (key: string, revision: number, value: number) => ({ key, revision: String(revision), value });

function feed(id: string, ...events: Event[]) {
  for (const event of events) stores.take(event);
  stores.commit(id);
  stores.publish();
}

const shown = () => [...overlay.view.resources].map(([key, { value }]) => `${key}=${value}`).join();
const conflict = new ConflictError(undefined, null);

beforeEach(() => {
  vi.useFakeTimers();
  stores = new Stores();
  store = stores.add(canonical('w')) as Store<number>;
  stores.request();
  stores.open();
  feed('w@e-2', { ...reset, reason: 'initial' } as Event, up('a', 1, 1), up('b', 2, 2), end(2));
  sent = [];
  overlay = optimistic(store, {
    put: (_, key, value, { revision }) => ask('put', key, revision, value),
    delete: (_, key, { revision }) => ask('delete', key, revision),
  });
});

test('a write is shown at once, names the revision that was shown, and is confirmed by the stream', async () => {
  const changes: string[] = [];
  overlay.subscribe((_, { keys }) => void changes.push([...keys].join()));
  const write = overlay.put('a', 10);
  expect([shown(), [...overlay.pending]]).toEqual(['a=10,b=2', [['a', 1]]]);
  expect(sent).toMatchObject([{ method: 'put', key: 'a', value: 10, revision: '1' }]);
  await sent[0]!.answer(stored('a', 3, 10));
  expect(await write).toEqual(stored('a', 3, 10));
  expect([shown(), overlay.pending.size]).toEqual(['a=10,b=2', 1]); // the stream is behind
  feed('w@e-3', up('a', 3, 10));
  expect([shown(), overlay.pending.size, store.resources.get('a')]).toEqual(['a=10,b=2', 0, overlay.view.resources.get('a')]);
  expect(changes).toEqual(['a,b', 'a', 'a']);
});

test('a key that does not exist must not exist, and a delete hides its row', async () => {
  void overlay.put('c', 3);
  const deleted = overlay.delete('b');
  expect(shown()).toBe('a=1,c=3');
  expect([overlay.view.resources.size, overlay.view.resources.has('b'), [...overlay.view.resources.keys()]]).toEqual([
    2,
    false,
    ['a', 'c'],
  ]);
  expect(sent.map(({ revision }) => revision)).toEqual([null, '2']);
  await sent[1]!.answer(true);
  expect([await deleted, shown()]).toEqual([true, 'a=1,c=3']);
  feed('w@e-3', gone('b', 3));
  expect([shown(), [...overlay.pending.keys()]]).toEqual(['a=1,c=3', ['c']]);
});

test('a conflict takes a write back, and those to the same key after it', async () => {
  const first = overlay.put('a', 10);
  const second = overlay.put('a', 11);
  expect([shown(), sent.length]).toEqual(['a=11,b=2', 1]);
  const refused = Promise.all([expect(first).rejects.toBe(conflict), expect(second).rejects.toBe(conflict)]);
  await sent[0]!.fail(conflict);
  await refused;
  expect([shown(), overlay.pending.size, sent.length]).toEqual(['a=1,b=2', 0, 1]);
});

test('a later value of somebody else is shown while the write has no answer', async () => {
  const write = overlay.put('a', 10);
  feed('w@e-3', up('a', 3, 33));
  expect(shown()).toBe('a=33,b=2');
  const refused = expect(write).rejects.toBe(conflict);
  await sent[0]!.fail(conflict);
  await refused;
  expect(shown()).toBe('a=33,b=2');
});

test('writes to one key are sent one after the other, each with the revision of the one before it', async () => {
  void overlay.put('a', 10);
  void overlay.put('a', 11);
  void overlay.delete('a');
  feed('w@e-3', up('a', 3, 10)); // before the answer
  expect(shown()).toBe('b=2');
  await sent[0]!.answer(stored('a', 3, 10));
  await sent[1]!.answer(stored('a', 4, 11));
  expect([shown(), sent.map(({ method, revision }) => `${method} ${revision}`)]).toEqual(['b=2', ['put 1', 'put 3', 'delete 4']]);
  await sent[2]!.answer(true);
  feed('w@e-5', up('a', 4, 11), gone('a', 5));
  expect([shown(), overlay.pending.size]).toEqual(['b=2', 0]);
});

test('a lost answer takes the write back, and the stream tells what it did', async () => {
  const lost = new TypeError('failed to fetch');
  const write = overlay.put('a', 10);
  const refused = expect(write).rejects.toBe(lost);
  await sent[0]!.fail(lost);
  await refused;
  expect(shown()).toBe('a=1,b=2');
  feed('w@e-3', up('a', 3, 10));
  expect(shown()).toBe('a=10,b=2');
});

test('force names no revision, and a revision that is not shown is not shown over', () => {
  void overlay.put('a', 10, { force: true });
  void overlay.put('b', 20, { revision: '1' });
  expect(sent.map(({ revision }) => revision)).toEqual([undefined, '1']);
  expect(shown()).toBe('a=10,b=2');
});

test('after a restored upstream, an accepted write does not hide what it has', async () => {
  void overlay.put('a', 10);
  await sent[0]!.answer(stored('a', 300, 10));
  feed('w@f-1', reset, up('a', 1, 7), end(1));
  expect([shown(), overlay.pending.size]).toEqual(['a=7', 0]);
});

test('an accepted write that the stream never brings is shown for ten seconds', async () => {
  void overlay.put('a', 10);
  await sent[0]!.answer(stored('a', 300, 10));
  await vi.advanceTimersByTimeAsync(9_999);
  expect(shown()).toBe('a=10,b=2');
  await vi.advanceTimersByTimeAsync(1);
  expect([shown(), overlay.pending.size]).toEqual(['a=1,b=2', 0]);
});

test('while there is no connection, an accepted write stays', async () => {
  void overlay.put('a', 10);
  await sent[0]!.answer(stored('a', 3, 10));
  stores.disconnect({ state: 'offline', since: 0, reason: '' });
  await vi.advanceTimersByTimeAsync(60_000);
  expect([shown(), overlay.view.state]).toEqual(['a=10,b=2', 'offline']);
});

test('an aborted write that waits is not sent', async () => {
  const stop = new AbortController();
  void overlay.put('a', 10);
  const second = overlay.put('a', 11, { signal: stop.signal });
  stop.abort(new Error('not any more'));
  const refused = expect(second).rejects.toThrow('not any more');
  await sent[0]!.answer(stored('a', 3, 10));
  await refused;
  expect([sent.length, shown()]).toEqual([1, 'a=10,b=2']);
  await expect(overlay.put('a', 1, { signal: stop.signal })).rejects.toThrow('not any more');
});

test('writes without an answer are limited, and a closed overlay takes none', async () => {
  for (let i = 0; i < 1_000; i++) void overlay.put(`k${i}`, i);
  await expect(overlay.put('a', 1)).rejects.toThrow('1000 writes have no answer yet');
  overlay.close();
  await expect(overlay.put('a', 1)).rejects.toThrow('closed');
});

test('it takes the requests of http', () => {
  const typed: Overlay<number> = optimistic(store, http<{ w: number }>('/'));
  typed.close();
});

describe('an aborted write', () => {
  test('that waits is taken back at once, with those after it, while the one before it is on its way', async () => {
    const abort = new AbortController();
    const first = overlay.put('a', 2);
    const second = overlay.put('a', 3, { signal: abort.signal }).catch((error: Error) => error.message);
    const third = overlay.put('a', 4).catch((error: Error) => error.message);
    abort.abort(new Error('enough'));
    expect([await second, await third, shown(), overlay.pending.get('a')]).toEqual(['enough', 'enough', 'a=2,b=2', 1]);
    await sent[0]!.answer(stored('a', 3, 2));
    expect([await first, sent.length]).toEqual([stored('a', 3, 2), 1]);
  });

  test('that is on its way is left to the writer', async () => {
    const abort = new AbortController();
    const write = overlay.put('a', 2, { signal: abort.signal });
    abort.abort(new Error('enough'));
    await sent[0]!.answer(stored('a', 3, 2));
    expect(await write).toEqual(stored('a', 3, 2));
  });

  test('leaves no listener behind when it has ended', async () => {
    const { signal } = new AbortController();
    const [add, remove] = [vi.spyOn(signal, 'addEventListener'), vi.fn()];
    const write = overlay.put('a', 2, { signal });
    (add.mock.calls[0]![2] as { signal: AbortSignal }).signal.addEventListener('abort', remove);
    await sent[0]!.answer(stored('a', 3, 2));
    await write;
    expect([add.mock.calls.length, remove.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('after the upstream went back', () => {
  const goBack = (revision: number) => feed(`w@f${revision}-1`, reset, up('a', 1, 7), end(revision));

  test('a write waits for one to the same key that is still on its way', async () => {
    void overlay.put('a', 2);
    goBack(1);
    const next = overlay.put('a', 3);
    await settled();
    expect([sent.length, shown(), overlay.pending.get('a')]).toEqual([1, 'a=3', 1]);
    await sent[0]!.answer(stored('a', 3, 2));
    expect([sent.length, sent[1]?.revision]).toEqual([2, '1']);
    await sent[1]!.answer(stored('a', 4, 3));
    expect(await next).toEqual(stored('a', 4, 3));
  });

  test('again, one that waits for it is not lost', async () => {
    void overlay.put('a', 2);
    feed('w@f-9', reset, up('a', 9, 7), end(9));
    goBack(2);
    const waiting = overlay.put('a', 3).catch((error: Error) => error.message);
    goBack(1);
    expect([await waiting, overlay.pending.size]).toEqual(['the upstream has gone back: the write was not sent', 0]);
    await sent[0]!.fail(new Error('lost'));
    expect([sent.length, shown()]).toEqual([1, 'a=7']);
  });
});

test('an accepted write of a store that is closed needs no timer, and one of a store that is back in sync expires', async () => {
  const write = overlay.put('a', 2);
  await sent[0]!.answer(stored('a', 9, 2));
  await write;
  stores.disconnect({ state: 'offline', since: 0, reason: 'lost' });
  await vi.advanceTimersByTimeAsync(10_000);
  expect([vi.getTimerCount(), shown()]).toEqual([0, 'a=2,b=2']);
  stores.open();
  feed('w@e-2', end(2));
  await vi.advanceTimersByTimeAsync(9_999);
  expect(shown()).toBe('a=2,b=2');
  await vi.advanceTimersByTimeAsync(1);
  expect([shown(), vi.getTimerCount(), overlay.pending.size]).toEqual(['a=1,b=2', 0, 0]);
});
