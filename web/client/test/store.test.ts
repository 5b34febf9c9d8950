import { beforeEach, expect, test, vi } from 'vitest';
import type { Event } from '../src/protocol.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { Stores } from '../src/stores.js';

let stores: Stores;
let store: Store;
let calls: Array<{ state: string; keys: string; changed: string }>;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  stores = new Stores();
  store = stores.add(canonical('w'));
  calls = [];
  store.subscribe(({ state, resources }, { replaced, keys }) => {
    calls.push({ state, keys: text(resources), changed: replaced ? 'all' : [...keys].join() });
  });
  calls.length = 0;
});

const text = (resources: Store['resources']) => [...resources].map(([key, { value }]) => `${key}=${value}`).join();

const up = (key: string, revision: number, value: unknown): Event => ({
  type: 'upsert',
  watch: 'w',
  key,
  revision: String(revision),
  value,
});
const del = (key: string, revision: number): Event => ({ type: 'delete', watch: 'w', key, revision: String(revision) });
const reset = (): Event => ({ type: 'reset', watch: 'w', reason: 'expired' });
const end = (revision: number) => ({ type: 'end_of_snapshot', watch: 'w', revision: String(revision) }) as Event;
const bookmark = (revision: number): Event => ({ type: 'bookmark', watch: 'w', revision: String(revision) });
const status = (state: string, since = '1970-01-01T00:10:00Z'): Event => ({ type: 'status', watch: 'w', state, since }) as Event;

function open(renewing = false) {
  if (!renewing) stores.connection = { state: 'offline', since: Date.now(), reason: '' };
  stores.request();
  stores.open();
  stores.publish();
}

/** Feeds events that arrive together; a string is an id. */
function feed(...events: Array<Event | string>) {
  for (const event of events) typeof event === 'string' ? stores.commit(event) : stores.take(event);
  stores.publish();
}

function primed() {
  open();
  feed(reset(), 'w@e-0/5', up('a', 3, 1), up('b', 5, 1), end(5), 'w@e-5');
  calls.length = 0;
}

const lose = () => stores.disconnect({ state: 'offline', since: Date.now(), reason: 'gone' });

test('nothing is shown before the end of the first snapshot', () => {
  open();
  feed(reset(), 'w@e-0/5', up('a', 3, 1));
  feed(up('b', 5, 1), 'w@e-4/5');
  expect(calls).toEqual([{ state: 'priming', keys: '', changed: '' }]);
  feed(end(5), 'w@e-5');
  expect(calls.slice(1)).toEqual([{ state: 'in_sync', keys: 'a=1,b=1', changed: 'all' }]);
  expect(store.view.revision).toBe('5');
  expect(store.position).toBe('w@e-5');
});

test('events that arrive together cause one call, with whole transactions', () => {
  primed();
  feed(up('a', 6, 2), up('c', 6, 2), 'w@e-6', del('b', 7), 'w@e-7', up('a', 8, 3));
  expect(calls).toEqual([{ state: 'in_sync', keys: 'a=2,c=2', changed: 'a,c,b' }]);
  feed(up('c', 8, 3), 'w@e-8');
  expect(calls.slice(1)).toEqual([{ state: 'in_sync', keys: 'a=3,c=3', changed: 'a,c' }]);
});

test('the revision does not go back with a delete that shows the last version of its resource', () => {
  primed();
  feed(del('a', 3), 'w@_e-5!1');
  expect(text(store.view.resources)).toBe('b=1');
  expect(store.view.revision).toBe('5');
  feed(up('c', 1e15, 1), 'w@_e-1000000000000000');
  feed(up('d', 6, 1), 'w@_e-1000000000000000'); // of another view
  expect(store.view.revision).toBe('1000000000000000');
  feed(reset(), 'w@f-0/4', up('a', 4, 1), end(4), 'w@f-4'); // another order
  expect(store.view.revision).toBe('4');
});

test('a bookmark with which a resume begins does not make the state consistent', () => {
  primed();
  lose();
  open();
  feed(bookmark(5), 'w@_e-5', del('a', 7), 'w@_e-5/8');
  expect(text(store.view.resources)).toBe('a=1,b=1');
  expect(store.view.revision).toBe('5');
  feed(end(8), 'w@_e-8');
  expect(text(store.view.resources)).toBe('b=1');
});

test('half a transaction causes no call', () => {
  primed();
  feed(up('a', 6, 2));
  expect(calls).toEqual([]);
});

test('after a reset the old state stays until the new one is complete', () => {
  primed();
  const before = store.resources;
  feed(reset(), 'w@f-0/9', up('z', 9, 9));
  expect(calls).toEqual([{ state: 'stale', keys: 'a=1,b=1', changed: '' }]);
  feed(end(9), 'w@f-9');
  expect(calls.slice(1)).toEqual([{ state: 'in_sync', keys: 'z=9', changed: 'all' }]);
  expect(text(before)).toBe('a=1,b=1');
});

test('a catch-up is shown at its bookmark', () => {
  primed();
  feed(status('catching_up'), up('a', 9, 9), 'w@e-7/10');
  feed(del('b', 10), 'w@e-9/10');
  expect(calls).toEqual([{ state: 'stale', keys: 'a=1,b=1', changed: '' }]);
  feed(bookmark(10), status('in_sync'), 'w@e-10');
  expect(calls.slice(1)).toEqual([{ state: 'in_sync', keys: 'a=9', changed: 'a,b' }]);
});

test('a catch-up that becomes a reset ends with the snapshot', () => {
  primed();
  feed(status('catching_up'), up('a', 9, 9), 'w@e-7/10', reset(), 'w@e-0/11', up('q', 11, 1), end(11), status('in_sync'), 'w@e-11');
  expect(calls).toEqual([{ state: 'in_sync', keys: 'q=1', changed: 'all' }]);
});

test('a snapshot that continues with a newer state is shown at its end', () => {
  open();
  feed(reset(), 'w@e-0/5', up('a', 3, 1), up('b', 4, 1), 'w@e-4/5');
  feed(status('catching_up'), del('a', 6), up('b', 7, 2), 'w@e-7/8');
  expect(text(store.resources)).toBe('');
  feed(up('c', 8, 1), end(8), status('in_sync'), 'w@e-8');
  expect(text(store.resources)).toBe('b=2,c=1');
});

test('events not completed by an id are dropped with the connection', () => {
  primed();
  feed(up('a', 6, 'half'));
  lose();
  open();
  feed(up('c', 7, 2), end(7), 'w@e-7');
  expect(store.resources.get('a')?.value).toBe(1);
  expect(store.resources.get('c')?.value).toBe(2);
});

test('a snapshot resumes where it was cut off', () => {
  open();
  feed(reset(), 'w@e-0/5', up('a', 3, 1), 'w@e-3/5', up('b', 4, 1));
  lose();
  open();
  feed(up('c', 5, 1), end(5), 'w@e-5');
  expect(text(store.resources)).toBe('a=1,c=1');
});

test('a snapshot that replaces another resumes where it was cut off', () => {
  primed();
  feed(reset(), 'w@f-0/9', up('y', 8, 8), 'w@f-8/9');
  lose();
  open();
  feed(up('z', 9, 9), end(9), 'w@f-9');
  expect(text(store.resources)).toBe('y=8,z=9');
});

test('since is the time of the last sync, however often the connection is lost', () => {
  primed();
  vi.setSystemTime(2_000_000);
  lose();
  expect(store.view).toMatchObject({ state: 'offline', since: 2_000_000, reason: 'gone' });
  vi.setSystemTime(3_000_000);
  open();
  expect(store.view).toMatchObject({ state: 'stale', since: 2_000_000, reason: 'catching up' });
  vi.setSystemTime(4_000_000);
  lose();
  expect(store.view).toMatchObject({ state: 'offline', since: 2_000_000 });
  open();
  feed(end(5), 'w@e-5');
  expect(store.view).toMatchObject({ state: 'in_sync', since: 4_000_000, reason: '' });
});

test('a stale event sets the state and its start time', () => {
  primed();
  feed(status('stale', '1970-01-01T00:15:00Z'));
  expect(store.view).toMatchObject({ state: 'stale', since: 900_000 });
  feed(status('resyncing', '1970-01-01T00:15:00Z'));
  expect(store.view).toMatchObject({ state: 'stale', since: 900_000 });
  feed(status('in_sync', '1970-01-01T00:16:00Z'));
  expect(store.view).toMatchObject({ state: 'in_sync', since: 960_000 });
});

test('a stream that replaces a healthy one is not reported', () => {
  primed();
  open(true);
  feed(end(5), 'w@e-5');
  expect(calls).toEqual([]);
  open(true);
  feed(reset(), 'w@e-0/6');
  expect(calls).toEqual([{ state: 'stale', keys: 'a=1,b=1', changed: '' }]);
});

test('a view is the same object until something changes', () => {
  primed();
  const { view } = store;
  stores.publish();
  expect(store.view).toBe(view);
  feed(bookmark(9), 'w@e-9');
  expect(store.view).not.toBe(view);
  expect(store.view).toMatchObject({ revision: '9', resources: view.resources });
});

test('keys that are not UTF-8 differ from their base64', () => {
  open();
  feed(reset(), up('//4=', 1, 'text'), { ...up('//4=', 2, 'bytes'), key_encoding: 'base64' } as Event, end(2), 'w@e-2');
  expect([...store.resources.values()]).toEqual([
    { key: '//4=', revision: '1', value: 'text' },
    { key: '//4=', revision: '2', value: 'bytes', key_encoding: 'base64' },
  ]);
});

test('a listener that throws does not affect others', () => {
  primed();
  const microtasks: Array<() => void> = [];
  vi.stubGlobal('queueMicrotask', (task: () => void) => microtasks.push(task));
  const bad = vi.fn(() => {
    if (bad.mock.calls.length > 1) throw new Error('bad');
  });
  const good = vi.fn();
  store.subscribe(bad);
  store.subscribe(good);
  feed(up('a', 6, 2), 'w@e-6');
  vi.unstubAllGlobals();
  expect(good).toHaveBeenCalledTimes(2);
  expect(microtasks[0]).toThrow('bad');
});

test('a listener that unsubscribed is not called', () => {
  primed();
  const run = vi.fn();
  store.subscribe(run)();
  feed(up('a', 6, 2), 'w@e-6');
  expect(run).toHaveBeenCalledTimes(1);
});

test('a watch that is added again resumes as long as the id names it', () => {
  primed();
  stores.remove('w');
  expect(store.state).toBe('closed');
  feed(up('a', 6, 2), 'w@e-6');
  expect(stores.add(canonical('w'))).toBe(store);
  expect(text(store.resources)).toBe('a=2,b=1');
});

test('a watch that the newest id does not name starts empty', () => {
  primed();
  stores.add(canonical('v'));
  stores.remove('w');
  stores.request();
  stores.open();
  stores.commit('v@e-1');
  const again = stores.add(canonical('w'));
  expect(again).not.toBe(store);
  expect(again.resources.size).toBe(0);
});

const part = canonical({ watch: 'w', filter: 'value == 2' });

test('another part of a watch is another store, which gets nothing of a stream that was requested before', () => {
  primed();
  stores.remove('w');
  const narrowed = stores.add(part);
  feed(reset(), up('c', 7, 2), end(7), 'w@e-7');
  expect([narrowed.resources.size, narrowed.view.revision, narrowed.position]).toEqual([0, '', '']);
  open(true);
  feed(reset(), up('c', 7, 2), end(7), 'w@e.1-7');
  expect(text(narrowed.resources)).toBe('c=2');
  expect([text(store.resources), store.state]).toEqual(['a=1,b=1', 'closed']);
});

test('a store is kept for as long as the newest id may name it, whatever else of its watch is added meanwhile', () => {
  primed();
  stores.remove('w');
  stores.add(part);
  stores.remove('w');
  expect(stores.add(canonical('w'))).toBe(store); // the id resumes it
  stores.remove('w');
  const narrowed = stores.add(part);
  open(true);
  feed(reset(), end(7), 'w@e.1-7');
  stores.remove('w');
  expect(stores.add(canonical('w'))).not.toBe(store); // the id resumes the part
  stores.remove('w');
  expect(stores.add(part)).toBe(narrowed);
});

test('a store is kept while the id still has the position that came with the request', () => {
  primed();
  stores.add(canonical('v'));
  stores.remove('w');
  stores.add(part);
  open(true);
  stores.commit('w@e-5,v@e-1'); // nothing of the part has arrived, so that the id resumes the whole watch
  stores.remove('w');
  expect(stores.add(canonical('w'))).toBe(store);
});

test('the same definition has the same query, however it is written', () => {
  const { query } = canonical({
    watch: 'w',
    prefix: 'a b/',
    labels: 'app in (x, y)',
    filter: 'value.a && value.b',
    fields: ['x', 'y."a,b"'],
  });
  expect(query).toBe('watch=w&prefix.w=a+b%2F&labels.w=app+in+%28x%2C+y%29&filter.w=value.a+%26%26+value.b&fields.w=x%2Cy.%22a%2Cb%22');
  expect(canonical({ fields: 'x,y."a,b"', filter: 'value.a && value.b', labels: 'app in (x, y)', prefix: 'a b/', watch: 'w' }).query).toBe(
    query,
  );
  expect(canonical({ watch: 'w', prefix: '', fields: [] })).toEqual(canonical('w'));
});
