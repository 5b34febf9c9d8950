// @vitest-environment happy-dom
import { act, StrictMode, useEffect, useSyncExternalStore } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, expectTypeOf, test } from 'vitest';
import type { Readable } from '../src/index.js';
import type { QueryOptions, QueryView } from '../src/query.js';
import { query } from '../src/query.js';
import { hydrating, renderedStore, useQuery } from '../src/react.js';
import type { Resource } from '../src/resource.js';
import { Counted, remove, upsert } from './line.js';

const odd = ({ value }: Resource<number>) => value % 2 === 1;
const even = ({ value }: Resource<number>) => value % 2 === 0;
const descending = (a: Resource<number>, b: Resource<number>) => b.value - a.value;
const text = ({ state, rows }: QueryView<number>) => `${state} ${[...rows].map(({ key, value }) => `${key}=${value}`).join()}`;

let notes: Counted;
let place: HTMLElement;
let root: Root;
let renders: number;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  notes = new Counted();
  place = document.createElement('div');
  root = createRoot(place);
  renders = 0;
});

afterEach(async () => {
  await act(() => root.unmount());
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

function Rows({ store = notes, ...options }: QueryOptions<number> & { store?: Readable<number> }) {
  renders++;
  return <p>{text(useQuery(store, options))}</p>;
}

const send = (revision: number, ...events: Array<ReturnType<typeof upsert>>) => act(() => notes.line.send(`w@e-${revision}`, ...events));

test.each(['once', 'twice, as StrictMode does'])('a query that is mounted %s follows its store', async (times) => {
  const rows = <Rows filter={odd} compare={descending} />;
  await act(() => root.render(times === 'once' ? rows : <StrictMode>{rows}</StrictMode>));
  expect([place.textContent, notes.listeners]).toEqual(['connecting ', 1]);
  await act(() => notes.snapshot(5, { a: 1, b: 2, c: 3 }));
  expect(place.textContent).toBe('in_sync c=3,a=1');
  await send(6, upsert('b', 6, 5), remove('c', 6));
  expect(place.textContent).toBe('in_sync b=5,a=1');
});

test('it is rendered once, and again when something changes', async () => {
  await notes.snapshot(5, { a: 1 });
  await act(() => root.render(<Rows filter={odd} />));
  expect(renders).toBe(1);
  await send(6, upsert('b', 6, 3));
  expect([place.textContent, renders]).toEqual(['in_sync a=1,b=3', 2]);
});

test('it follows another filter and another store, and functions that are new for each render cause no loop', async () => {
  await notes.snapshot(5, { a: 1, b: 2 });
  await act(() => root.render(<Rows filter={odd} />));
  await act(() => root.render(<Rows filter={even} />));
  expect(place.textContent).toBe('in_sync b=2');
  for (let i = 0; i < 3; i++) await act(() => root.render(<Rows filter={(one) => odd(one)} />));
  expect([place.textContent, renders, notes.listeners]).toEqual(['in_sync a=1', 5, 1]);
  const other = renderedStore({ resources: [{ key: 'x', revision: '1', value: 7 }], revision: '1', since: 0 });
  await act(() => root.render(<Rows filter={odd} store={other} />));
  expect([place.textContent, notes.listeners]).toEqual(['stale x=7', 0]);
});

test('a change between the render and its effects is shown', async () => {
  await notes.snapshot(5, { a: 1 });
  function Late() {
    useEffect(() => notes.line.send('w@e-6', upsert('b', 6, 3)), []);
    return <Rows filter={odd} />;
  }
  await act(() => root.render(<Late />));
  expect(place.textContent).toBe('in_sync a=1,b=3');
});

test('a server renders it, and the first render in the browser is the same', async () => {
  const data = { resources: [{ key: 'a', revision: '1', value: 1 }], revision: '1', since: 0 };
  place.innerHTML = renderToString(<Rows filter={odd} store={renderedStore(data)} />);
  expect(place.textContent).toBe('stale a=1');
  await notes.snapshot(5, { a: 1, b: 3 });
  const mistakes: unknown[] = [];
  await act(() => {
    root = hydrateRoot(place, <Rows filter={odd} store={hydrating(notes, data)} />, {
      onRecoverableError: (error) => mistakes.push(error),
    });
  });
  expect([place.textContent, mistakes]).toEqual(['in_sync a=1,b=3', []]);
});

test('a query of the page that StrictMode has closed is an error, and not one without changes', async () => {
  await notes.snapshot(5, { a: 1 });
  const live = query(notes, { filter: odd });
  const subscribe = (changed: () => void) => live.subscribe(changed);
  function Mistaken() {
    const view = useSyncExternalStore(subscribe, () => live.view);
    useEffect(() => () => live.close(), []);
    return <p>{text(view)}</p>;
  }
  const mistaken = async () =>
    act(() =>
      root.render(
        <StrictMode>
          <Mistaken />
        </StrictMode>,
      ),
    );
  await expect(mistaken()).rejects.toThrow('it was closed');
});

test('what adapters take has a name', () => {
  expectTypeOf(notes.tide.store('w')).toExtend<Readable<number>>();
});
