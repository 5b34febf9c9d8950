// @vitest-environment happy-dom
import { act, memo, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { beforeEach, expect, test } from 'vitest';
import type { Event } from '../src/protocol.js';
import { useWatch } from '../src/react.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { Stores } from '../src/stores.js';

let stores: Stores;
let store: Store<number>;

const up = (key: string, revision: number, value: number): Event => ({
  type: 'upsert',
  watch: 'w',
  key,
  revision: String(revision),
  value,
});
const reset: Event = { type: 'reset', watch: 'w', reason: 'initial' };
const end = (revision: number) => ({ type: 'end_of_snapshot', watch: 'w', revision: String(revision) }) as Event;

function feed(...events: Array<Event | string>) {
  for (const event of events) typeof event === 'string' ? stores.commit(event) : stores.take(event);
  stores.publish();
}

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  stores = new Stores();
  store = stores.add(canonical('w')) as Store<number>;
  stores.request();
  stores.open();
  feed(reset, up('a', 1, 1), up('b', 2, 2), end(2), 'w@e-2');
});

test('resources are another object for each state, and the same while only the freshness changes', () => {
  const { resources } = store;
  feed({ type: 'status', watch: 'w', state: 'stale', since: '2026-01-02T03:04:05Z' });
  feed({ type: 'bookmark', watch: 'w', revision: '3' }, 'w@e-3');
  expect(store.resources).toBe(resources);
  feed(up('a', 4, 4), 'w@e-4');
  expect(store.resources).not.toBe(resources);
  feed({ type: 'delete', watch: 'w', key: 'b', revision: '5' }, 'w@e-5');
  expect([...store.resources.keys()]).toEqual(['a']);
});

test('resources are not copied, and a copy stands still', () => {
  const { resources } = store;
  const snapshot = new Map(resources);
  feed(up('a', 3, 3), 'w@e-3');
  expect([resources.get('a')?.value, snapshot.get('a')?.value]).toEqual([3, 1]);
});

test('what a snapshot has replaced stands still', () => {
  const { resources } = store;
  feed(reset, up('z', 9, 9), end(9), 'w@f-9');
  feed(up('a', 10, 10), 'w@f-10');
  expect([...resources].map(([key, { value }]) => `${key}=${value}`)).toEqual(['a=1', 'b=2']);
});

test('resources have all that a read-only map has, and cannot be changed', () => {
  const { resources } = store;
  const [a, b] = [resources.get('a')!, resources.get('b')!];
  expect([resources.size, resources.has('a'), resources.has('c'), resources.get('c')]).toEqual([2, true, false, undefined]);
  expect([...resources]).toEqual([
    ['a', a],
    ['b', b],
  ]);
  expect([...resources.entries()]).toEqual([...resources]);
  expect([...resources.keys()]).toEqual(['a', 'b']);
  expect([...resources.values()]).toEqual([a, b]);
  const seen: unknown[] = [];
  const self = {};
  resources.forEach(function (this: unknown, ...all) {
    seen.push(this === self, ...all);
  }, self);
  expect(seen).toEqual([true, a, 'a', resources, true, b, 'b', resources]);
  expect('set' in resources || 'delete' in resources || 'clear' in resources).toBe(false);
});

test('resources can be wrapped in a Proxy, as observers do', () => {
  const wrapped = new Proxy(store.resources, {});
  expect([wrapped.size, wrapped.get('a')?.value, [...wrapped.keys()]]).toEqual([2, 1, ['a', 'b']]);
});

test('resources work as a dependency, a property and a selection in React', async () => {
  const Sum = memo(({ resources }: { resources: Store<number>['resources'] }) => {
    const sum = useMemo(() => [...resources.values()].reduce((all, { value }) => all + value, 0), [resources]);
    return <b>{sum}</b>;
  });
  const Whole = () => <Sum resources={useWatch(store, ({ resources }) => resources)} />;
  const place = document.createElement('div');
  const root = createRoot(place);
  await act(() => root.render(<Whole />));
  expect(place.textContent).toBe('3');
  await act(() => feed(up('a', 3, 40), 'w@e-3'));
  expect(place.textContent).toBe('42');
  await act(() => root.unmount());
});

test('isEqual is kept with a selector that is a new function for each render', async () => {
  const Keys = memo(({ keys }: { keys: string[] }) => {
    drawn++;
    return <b>{keys.join()}</b>;
  });
  let renders = 0;
  let drawn = 0;
  function Whole({ n }: { n: number }) {
    renders++;
    const keys = useWatch(
      store,
      ({ resources }) => [...resources.keys()].sort(),
      (a, b) => a.join() === b.join(),
    );
    return (
      <i title={`${n}`}>
        <Keys keys={keys} />
      </i>
    );
  }
  const place = document.createElement('div');
  const root = createRoot(place);
  await act(() => root.render(<Whole n={1} />));
  await act(() => root.render(<Whole n={2} />));
  await act(() => feed(up('a', 3, 3), 'w@e-3'));
  await act(() => root.render(<Whole n={3} />));
  expect([place.textContent, renders, drawn]).toEqual(['a,b', 3, 1]);
  await act(() => feed(up('c', 4, 4), 'w@e-4'));
  expect([place.textContent, renders, drawn]).toEqual(['a,b,c', 4, 2]);
  await act(() => root.unmount());
});
