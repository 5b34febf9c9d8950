import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../src/protocol.js';
import type { Snapshot } from '../src/snapshot.js';
import { canonical } from '../src/spec.js';
import { parser } from '../src/sse.js';
import { snapshot } from '../src/store.js';
import { Stores } from '../src/stores.js';
import { following } from './following.js';
import { bookmark, endOfSnapshot, hello, pass, reset, upsert } from './server.js';
import { history, response, Upstream } from './upstream.js';

const f = following();

const initial = (over: Partial<Snapshot> = {}): Snapshot => ({
  resources: [
    { key: 'a', revision: '5', value: 1 },
    { key: '/w==', key_encoding: 'base64', revision: '4', value: 2 },
  ],
  revision: '5',
  position: 'w@e-5',
  since: 999_000,
  ...over,
});

const start = (over: Partial<Snapshot> = {}) => f.start({ watches: [{ watch: 'w', initial: initial(over) }] });
const values = () => [...f.tide.store('w').resources].map(([key, { value }]) => [key, value]);
const given = [
  ['a', 1],
  ['\udfff/w==', 2],
];

test('a store begins with what it is given, as stale, and resumes from its position', async () => {
  const store = await start();
  expect(store.view).toMatchObject({ state: 'stale', since: 999_000, revision: '5' });
  expect([values(), store.position, f.server.last.lastEventId]).toEqual([given, 'w@e-5', 'w@e-5']);
  f.server.last.accept(hello(['w'], 'resume') + upsert('w', 'a', 7, 3) + endOfSnapshot('w', 7, 2, 'w@e-7', true));
  await pass();
  expect([store.state, values(), store.position]).toEqual(['in_sync', [['a', 3], given[1]], 'w@e-7']);
});

test('a position that cannot be resumed is answered by a reset, and the rows stay until the snapshot is complete', async () => {
  const store = await start();
  const sizes: number[] = [];
  store.subscribe(({ resources }) => void sizes.push(resources.size));
  f.server.last.accept(hello(['w'], 'resume') + reset('w', 'w@f-0/9', 'epoch_changed') + upsert('w', 'b', 9, 4));
  await pass();
  expect([store.state, values()]).toEqual(['stale', given]);
  f.server.last.send(endOfSnapshot('w', 9, 1, 'w@f-9'));
  await pass();
  expect([store.state, values(), sizes.includes(0)]).toEqual(['in_sync', [['b', 4]], false]);
});

test('while there is no connection, the rows are shown, as old as they are', async () => {
  const store = await start();
  f.server.last.fail();
  await pass();
  expect(store.view).toMatchObject({ state: 'stale', since: 999_000, reason: 'connection refused' });
  expect(values()).toEqual(given);
});

test.each([
  ['of another watch', 'v@e-5'],
  ['that is missing', ''],
])('a position %s is not sent', async (_, position) => {
  const store = await start({ position });
  expect([f.server.last.lastEventId, values(), store.state]).toEqual([null, given, 'stale']);
});

test('what no header can have is not sent', async () => {
  await start({ position: '\u{1f600}w@e-5\n' });
  expect(f.server.last.lastEventId).toBe('w@e-5');
});

test('of the id of a stream of several watches, only its own position is sent', async () => {
  await start({ position: 'v@e-1,w@e-5,x@e-9' });
  expect(f.server.last.lastEventId).toBe('w@e-5');
});

test('a watch that is added later is resumed beside the others, also after an id that does not name it yet', async () => {
  await f.follow();
  f.tide.add({ watch: 'v', initial: initial({ position: 'v@e-3' }) });
  f.server.last.send(bookmark('w', 6, 'w@e-6'));
  await pass(60);
  expect(f.server.last.lastEventId).toBe('w@e-6,v@e-3');
  f.server.last.fail();
  await pass(5_000);
  expect(f.server.last.lastEventId).toBe('w@e-6,v@e-3');
  f.server.last.accept(hello(['w', 'v'], 'resume') + endOfSnapshot('w', 6, 1, 'w@e-6,v@e-3', true));
  await pass();
  f.server.last.cut();
  await pass(5_000);
  expect(f.server.last.lastEventId).toBe('w@e-6,v@e-3');
});

test('an id has at most one position of a watch', async () => {
  await f.follow();
  f.tide.remove('w');
  f.tide.add({ watch: 'w', labels: 'a=b', initial: initial({ position: 'w@g-1' }) });
  await pass(60);
  expect(f.server.last.lastEventId).toBe('w@g-1');
});

test('a snapshot has the resources and the position of one state, also while listeners are called', async () => {
  const store = await f.start();
  expect(snapshot(store)).toBeUndefined();
  const v = f.tide.add('v');
  await pass(60);
  const seen: unknown[] = [];
  f.tide.store('w').subscribe(({ state }) => {
    if (state === 'in_sync') seen.push(snapshot(v));
  });
  f.server.last.accept(
    hello(['w', 'v']) +
      reset('w', 'w@e-0/1,v@e-0/2') +
      reset('v', 'w@e-0/1,v@e-0/2') +
      endOfSnapshot('w', 1, 0, 'w@e-1,v@e-0/2') +
      upsert('v', 'k', 2, 'x') +
      endOfSnapshot('v', 2, 1, 'w@e-1,v@e-2'),
  );
  await pass();
  const resources = [{ key: 'k', revision: '2', value: 'x', hash: 'ab07f7eb9b85a382' }];
  expect(seen).toMatchObject([{ resources, revision: '2', position: 'v@e-2' }]);
  expect(JSON.parse(JSON.stringify(snapshot(v)))).toEqual({ resources, revision: '2', position: 'v@e-2', since: Date.now() });
});

test('a client that begins with any snapshot of another one ends with the same resources', () => {
  fc.assert(
    fc.property(
      history,
      fc.nat(),
      fc.array(fc.nat(), { maxLength: 5 }),
      fc.infiniteStream(fc.nat(1_000)),
      (commits, first, cuts, random) => {
        const choose = (n: number) => (random.next().value as number) % n;
        const upstream = new Upstream('w', commits, choose);
        const head = first % upstream.versions.length;
        const before = new Stores();
        const store = before.add(canonical('w'));
        read(before, response([upstream], '', [head], choose));
        const after = new Stores();
        const resumed = after.add(canonical({ watch: 'w', initial: JSON.parse(JSON.stringify(snapshot(store))) }));
        expect([...resumed.resources]).toEqual([...store.resources]);
        const end = upstream.versions.length - 1;
        const bytes = response([upstream], after.position, [end], choose);
        for (const cut of cuts) read(after, bytes.subarray(0, cut % bytes.length));
        read(after, response([upstream], after.position, [end], choose));
        const whole = new Stores();
        const expected = whole.add(canonical('w'));
        read(whole, response([upstream], '', [end], choose));
        expect(new Map(resumed.resources)).toEqual(new Map(expected.resources));
        expect(resumed.state).toBe('in_sync');
      },
    ),
    { numRuns: 300 },
  );
});

function read(stores: Stores, bytes: Uint8Array): void {
  stores.request();
  const feed = parser({
    event: (data) => {
      const event = JSON.parse(data) as Event;
      if (event.type === 'hello') stores.open();
      else stores.take(event);
    },
    id: (id) => stores.commit(id),
    retry: () => {},
  });
  feed(new TextDecoder().decode(bytes));
  stores.publish();
  if (stores.connection.state === 'open') stores.disconnect({ ...stores.connection, state: 'open' });
}
