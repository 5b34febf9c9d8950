import { beforeEach, expect, test } from 'vitest';
import type { Event } from '../src/protocol.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { closed, Stores } from '../src/stores.js';

let stores: Stores;
let store: Store<number>;

const up = (key: string, revision: number): Event => ({ type: 'upsert', watch: 'w', key, revision: String(revision), value: revision });

function feed(...events: Array<Event | string>) {
  for (const event of events) typeof event === 'string' ? stores.commit(event) : stores.take(event);
  stores.publish();
}

beforeEach(() => {
  stores = new Stores();
  store = stores.add(canonical('w')) as Store<number>;
  stores.request();
  stores.open();
  feed(
    { type: 'reset', watch: 'w', reason: 'initial' },
    up('a', 1),
    up('b', 2),
    { type: 'end_of_snapshot', watch: 'w', revision: '2', count: 2 },
    'w@e-2',
  );
});

/** Subscribes, and returns what the listener is called with from then on. */
function listen(): string[] {
  const calls: string[] = [];
  store.subscribe(({ state, revision }, { replaced, keys }) => calls.push(`${state} ${revision} ${replaced ? 'all' : [...keys]}`));
  return calls;
}

/** Calls act in the call of a listener for the revision 3. */
function once(act: () => void): void {
  let acted = false;
  store.subscribe(({ revision }) => {
    if (revision !== '3' || acted) return;
    acted = true;
    act();
  });
}

test('the first call of a listener reports all keys that are there', () => {
  expect(listen()).toEqual(['in_sync 2 a,b']);
});

test('the first call of a listener to an empty store reports no keys', () => {
  store = stores.add(canonical('empty')) as Store<number>;
  expect(listen()).toEqual(['priming  ']);
});

test.each([
  ['closes everything', () => stores.disconnect(closed())],
  ['removes the watch', () => stores.remove('w')],
])('all listeners see the views in order if one of them %s', (_, act) => {
  const before = listen();
  once(act);
  const after = listen();
  feed(up('a', 3), 'w@e-3');
  expect(before).toEqual(['in_sync 2 a,b', 'in_sync 3 a', 'closed 3 ']);
  expect(after).toEqual(before);
});

test('a listener that is subscribed by another one sees no older view', () => {
  let calls: string[] = [];
  once(() => {
    stores.remove('w');
    calls = listen();
  });
  feed(up('a', 3), 'w@e-3');
  expect(calls).toEqual(['closed 3 a,b']);
});

test('a listener that is unsubscribed by another one is not called again', () => {
  let end = () => {};
  once(() => end());
  const calls: string[] = [];
  end = store.subscribe(({ revision }) => calls.push(revision));
  feed(up('a', 3), 'w@e-3');
  expect(calls).toEqual(['2']);
});

test('views keep their order if the first call of a listener closes everything', () => {
  const states: string[] = [];
  store.subscribe(({ state }) => {
    if (state === 'in_sync') stores.disconnect(closed());
    states.push(state); // a view that came in between would be first
  });
  expect(states).toEqual(['in_sync', 'closed']);
});

test('a listener that throws in its first call does not hold up others', () => {
  const calls = listen();
  expect(() =>
    store.subscribe(() => {
      throw new Error('bad');
    }),
  ).toThrow('bad');
  stores.disconnect(closed());
  expect(calls).toEqual(['in_sync 2 a,b', 'closed 2 ']);
});
