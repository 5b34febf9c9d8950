// @vitest-environment happy-dom
import { act, Component, type ReactNode, Suspense } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RefusedError } from '../src/errors.js';
import type { Readable } from '../src/listeners.js';
import { hydrating, type Rendered, renderedStore, useWatch, useWatchSuspense } from '../src/react.js';
import { Counted, upsert } from './line.js';

let notes: Counted;
let place: HTMLElement;
let root: Root | undefined;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  notes = new Counted();
  place = document.createElement('div');
});

afterEach(() => {
  act(() => root?.unmount());
  expect(notes.listeners).toBe(0);
  notes.tide.close();
  vi.restoreAllMocks();
});

const text = ({ state, since, resources }: ReturnType<typeof useWatch<number>>) =>
  `${state} ${since} ${[...resources].map(([key, { value }]) => `${key}=${value}`)}`;

const List = ({ store }: { store: Readable<number> }) => <p>{text(useWatch(store))}</p>;
const Suspended = ({ store }: { store: Readable<number> }) => <p>{text(useWatchSuspense(store)).replace(/ \d+/, '')}</p>;
const Size = ({ store }: { store: Readable<number> }) => <p>{useWatchSuspense(store, ({ resources }) => resources.size)}</p>;

class Boundary extends Component<{ children: ReactNode }> {
  override state: { error?: Error } = {};
  static getDerivedStateFromError = (error: Error) => ({ error });
  override render() {
    return this.state.error ? <p>{this.state.error.message}</p> : this.props.children;
  }
}

const data: Rendered<number> = {
  resources: [
    { key: 'a', revision: '3', value: 1 },
    { key: 'b', revision: '4', value: 2 },
  ],
  revision: '4',
  since: 1000,
};

test('a server renders rows, and the page hydrates them without a mismatch, whatever it has received meanwhile', async () => {
  place.innerHTML = renderToString(<List store={renderedStore(data)} />);
  expect(place.textContent).toBe('stale 1000 a=1,b=2');
  await notes.snapshot(9, { a: 10, c: 3 });
  const mismatches: unknown[] = [];
  const complain = vi.spyOn(console, 'error').mockImplementation(() => {});
  await act(async () => {
    root = hydrateRoot(place, <List store={hydrating(notes, data)} />, { onRecoverableError: (error) => mismatches.push(error) });
  });
  expect(mismatches).toEqual([]);
  expect(complain).not.toHaveBeenCalled();
  expect(place.textContent).toMatch(/^in_sync \d+ a=10,c=3$/);
  act(() => notes.line.send('w@e-10', upsert('a', 10, 11)));
  expect(place.textContent).toMatch(/ a=11,c=3$/);
});

test('without the rows of the server, the same page is a mismatch: the test can fail', async () => {
  place.innerHTML = renderToString(<List store={renderedStore(data)} />);
  await notes.snapshot(9, { a: 10, c: 3 });
  const mismatches: unknown[] = [];
  vi.spyOn(console, 'error').mockImplementation(() => {});
  await act(async () => {
    root = hydrateRoot(place, <List store={notes} />, { onRecoverableError: (error) => mismatches.push(error) });
  });
  expect(mismatches).toHaveLength(1);
});

test('suspended until the first state, and never again', async () => {
  root = createRoot(place);
  const shown = (
    <Suspense fallback="wait">
      <Suspended store={notes} />
      <Size store={notes} />
    </Suspense>
  );
  await act(async () => root!.render(shown));
  expect(place.textContent).toBe('wait');
  await act(async () => notes.snapshot(5, { a: 1, b: 2 }));
  expect(place.textContent).toBe('in_sync a=1,b=22');
  await act(async () => notes.line.send('w@e-6', upsert('c', 6, 3)));
  expect(place.textContent).toBe('in_sync a=1,b=2,c=33');
});

test('a suspended component that is gone leaves no listener after the first state', async () => {
  root = createRoot(place);
  await act(async () =>
    root!.render(
      <Suspense fallback="wait">
        <Suspended store={notes} />
      </Suspense>,
    ),
  );
  await act(async () => root!.render(null));
  await act(async () => notes.snapshot(5, { a: 1 }));
  expect(notes.listeners).toBe(0);
});

test('a refused watch is an error for the boundary', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  root = createRoot(place);
  await act(async () =>
    root!.render(
      <Boundary>
        <Suspense fallback="wait">
          <Suspended store={notes} />
        </Suspense>
      </Boundary>,
    ),
  );
  await notes.line.opened;
  await act(async () =>
    notes.line.refuse(
      new RefusedError(404, { type: 'about:blank', title: 'Not Found', status: 404, detail: 'no such watch' } as never, undefined),
    ),
  );
  expect(place.textContent).toContain('no such watch');
});

test('a server renders what suspends from rows too', () => {
  expect(renderToString(<Suspended store={renderedStore(data)} />)).toBe('<p>stale a=1,b=2</p>');
});
