// @vitest-environment happy-dom
import { act, StrictMode, useState } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Event } from '../src/protocol.js';
import { useCounts, useWatch, useWindow } from '../src/react.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { Stores } from '../src/stores.js';
import { countsText, ShownCounts, ShownWindow, textOf } from './live.js';

let stores: Stores;
let store: Store<number>;
let root: Root;
let place: HTMLElement;
let renders = 0;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  stores = new Stores();
  store = stores.add(canonical('w')) as Store<number>;
  place = document.createElement('div');
  root = createRoot(place);
  renders = 0;
});

afterEach(() => act(() => root.unmount()));

function feed(...events: Array<Event | string>) {
  for (const event of events) typeof event === 'string' ? stores.commit(event) : stores.take(event);
  stores.publish();
}

const up = (key: string, revision: number, value: number): Event => ({
  type: 'upsert',
  watch: 'w',
  key,
  revision: String(revision),
  value,
});

function prime() {
  stores.request();
  stores.open();
  feed(
    { type: 'reset', watch: 'w', reason: 'initial' },
    up('a', 1, 1),
    up('b', 2, 2),
    { type: 'end_of_snapshot', watch: 'w', revision: '2', count: 2 },
    'w@e-2',
  );
}

function Whole() {
  const { state, resources } = useWatch(store);
  renders++;
  return (
    <p>
      {state}: {[...resources].map(([key, { value }]) => `${key}=${value}`).join()}
    </p>
  );
}

function One({ name }: { name: string }) {
  const value = useWatch(store, ({ resources }) => resources.get(name)?.value);
  renders++;
  return <p>{value ?? 'none'}</p>;
}

test('shows the store, and its changes', async () => {
  await act(() =>
    root.render(
      <StrictMode>
        <Whole />
      </StrictMode>,
    ),
  );
  expect(place.textContent).toBe('connecting: ');
  await act(prime);
  expect(place.textContent).toBe('in_sync: a=1,b=2');
  await act(() => feed(up('a', 3, 3), 'w@e-3'));
  expect(place.textContent).toBe('in_sync: a=3,b=2');
});

test('is rendered only when its selection changes', async () => {
  prime();
  await act(() => root.render(<One name="a" />));
  expect([place.textContent, renders]).toEqual(['1', 1]);
  await act(() => feed(up('b', 3, 3), 'w@e-3'));
  expect(renders).toBe(1);
  await act(() => feed(up('a', 4, 4), 'w@e-4'));
  expect([place.textContent, renders]).toEqual(['4', 2]);
});

test('follows another selector', async () => {
  prime();
  await act(() => root.render(<One name="a" />));
  await act(() => root.render(<One name="b" />));
  expect(place.textContent).toBe('2');
});

test('a selector that returns a new object each time causes no loop, and isEqual avoids renders', async () => {
  prime();
  const isEqual = (a: string[], b: string[]) => a.join() === b.join();
  function Keys() {
    const keys = useWatch(store, ({ resources }) => [...resources.keys()].sort(), isEqual);
    const [, again] = useState(0);
    renders++;
    return <button onClick={() => again((n) => n + 1)}>{keys.join()}</button>;
  }
  await act(() => root.render(<Keys />));
  await act(() => place.querySelector('button')!.click());
  expect([place.textContent, renders]).toEqual(['a,b', 2]);
  await act(() => feed(up('a', 3, 3), 'w@e-3'));
  expect(renders).toBe(2);
  await act(() => feed(up('c', 4, 4), 'w@e-4'));
  expect([place.textContent, renders]).toEqual(['a,b,c', 3]);
});

test('renders on a server', () => {
  prime();
  expect(renderToString(<Whole />)).toContain('in_sync');
});

test('useWindow shows the rows of a window, and useCounts the groups of counts', async () => {
  const [page, counts] = [new ShownWindow(7, 'a'), new ShownCounts({ up: 2 })];
  const Page = () => `${textOf(useWindow(page))}, ${countsText(useCounts(counts))}`;
  await act(() => root.render(<Page />));
  expect(place.textContent).toBe('a of 7, up=2 of 2');
  await act(() => page.set(8, 'a', 'b'));
  await act(() => counts.set({ down: 1, up: 2 }));
  expect(place.textContent).toBe('a,b of 8, down=1,up=2 of 3');
  expect(renderToString(<Page />)).toBe('a,b of 8, down=1,up=2 of 3');
  expect([page.listeners, counts.listeners]).toEqual([1, 1]);
  await act(() => root.render(null));
  expect([page.listeners, counts.listeners]).toEqual([0, 0]);
});
