// @vitest-environment happy-dom
import { act, memo, type ReactNode, StrictMode } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, expectTypeOf, test, vi } from 'vitest';
import type { Readable } from '../src/listeners.js';
import { hydrating, type Rendered, renderedStore, useResource } from '../src/react.js';
import type { Resource } from '../src/resource.js';
import { Counted, remove, status, upsert } from './line.js';

let notes: Counted;
let place: HTMLElement;
let root: Root | undefined;
let rendered: string[];

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  notes = new Counted();
  place = document.createElement('div');
  root = undefined;
  rendered = [];
});

afterEach(() => {
  act(() => root?.unmount());
  expect(notes.listeners).toBe(0);
  notes.tide.close();
  vi.restoreAllMocks();
});

function Row({ store, name }: { store: Readable<number>; name: string }) {
  const resource = useResource(store, name);
  rendered.push(name);
  return <p>{resource ? `${resource.key}=${resource.value}` : 'none'} </p>;
}

const Strict = ({ children }: { children: ReactNode }) => <StrictMode>{children}</StrictMode>;

function render(shown: ReactNode) {
  root ??= createRoot(place);
  act(() => root!.render(shown));
}

/** Returns what is rendered by run. */
function rendersOf(run: () => void): string[] {
  rendered = [];
  act(run);
  return rendered;
}

test('of 10,000 rows, those whose key has changed are rendered, and nothing runs for the others', async () => {
  const names = Array.from({ length: 10_000 }, (_, i) => `k${i}`);
  await notes.snapshot(1, Object.fromEntries(names.map((name, i) => [name, i])));
  const Rows = memo(() => names.map((name) => <Row key={name} store={notes} name={name} />));
  render(<Rows />);
  expect([rendered.length, notes.listeners]).toEqual([10_000, 1]);
  let reads = 0;
  const { get } = Map.prototype;
  const spy = vi.spyOn(Map.prototype, 'get').mockImplementation(function (this: Map<unknown, unknown>, key) {
    if (typeof key === 'string' && /^k\d+$/.test(key)) reads++;
    return get.call(this, key);
  });
  const changed = rendersOf(() => notes.line.send('w@e-4', upsert('k7', 2, -1), remove('k8', 3), upsert('k9', 4, -3)));
  spy.mockRestore();
  expect(changed.sort()).toEqual(['k7', 'k8', 'k9']);
  expect(reads).toBeLessThan(100);
  expect(place.textContent?.slice(0, 100)).toContain('k6=6 k7=-1 none k9=-3 k10=10 ');
});

test('shows a resource that comes, changes, goes and comes back', async () => {
  render(
    <Strict>
      <Row store={notes} name="a" />
    </Strict>,
  );
  expect(place.textContent).toBe('none ');
  await act(() => notes.snapshot(1, { a: 1, b: 2 }));
  expect(place.textContent).toBe('a=1 ');
  act(() => notes.line.send('w@e-2', upsert('a', 2, 3)));
  expect(place.textContent).toBe('a=3 ');
  act(() => notes.line.send('w@e-3', remove('a', 3)));
  expect(place.textContent).toBe('none ');
  act(() => notes.line.send('w@e-4', upsert('a', 4, 5)));
  expect(place.textContent).toBe('a=5 ');
  expect(notes.listeners).toBe(1);
});

test('is not rendered for other keys, for the freshness, or after a reset that changes nothing', async () => {
  await notes.snapshot(1, { a: 1, b: 2 });
  const seen: unknown[] = [];
  function Seen() {
    seen.push(useResource(notes, 'a'));
    return null;
  }
  render(<Seen />);
  act(() => notes.line.send('w@e-2', upsert('b', 2, 3)));
  act(() => notes.line.send('w@e-2', status('stale')));
  act(() => notes.line.snapshot(1, { a: 1 }, 'behind'));
  expect(seen).toEqual([{ key: 'a', revision: '1', value: 1 }]);
  act(() => notes.line.snapshot(9, { a: 1 }, 'behind'));
  expect(seen.at(-1)).toEqual({ key: 'a', revision: '9', value: 1 });
  act(() => notes.line.snapshot(10, {}, 'behind'));
  expect(seen.at(-1)).toBeUndefined();
});

test('an unchanged resource is the same object after a reset, also if the component is rendered for another reason', async () => {
  await notes.snapshot(1, { a: 1 });
  const seen = new Set<unknown>();
  function Seen(_: { n: number }) {
    seen.add(useResource(notes, 'a'));
    return null;
  }
  render(<Seen n={1} />);
  act(() => notes.line.snapshot(1, { a: 1 }, 'behind'));
  render(<Seen n={2} />);
  expect(seen.size).toBe(1);
});

test('follows another key, and another store', async () => {
  const others = new Counted();
  await notes.snapshot(1, { a: 1, b: 1 });
  await others.snapshot(1, { b: 1 });
  const Page = ({ store, name }: { store: Readable<number>; name: string }) => (
    <Strict>
      <Row store={store} name={name} />
    </Strict>
  );
  render(<Page store={notes} name="a" />);
  render(<Page store={notes} name="b" />);
  expect(place.textContent).toBe('b=1 '); // not a, which has the same revision and value
  expect(rendersOf(() => notes.line.send('w@e-2', upsert('a', 2, 2)))).toEqual([]);
  act(() => notes.line.send('w@e-3', upsert('b', 3, 3)));
  expect(place.textContent).toBe('b=3 ');
  render(<Page store={others} name="b" />);
  expect([place.textContent, notes.listeners, others.listeners]).toEqual(['b=1 ', 0, 1]);
  render(null);
  expect(others.listeners).toBe(0);
  others.tide.close();
});

test('a change between the first render and the subscription is not lost', async () => {
  await notes.snapshot(1, { a: 1 });
  let change = () => notes.line.send('w@e-2', upsert('a', 2, 2));
  const Hasty = () => (
    <i
      ref={() => {
        change();
        change = () => {};
      }}
    />
  );
  render([<Hasty key="h" />, <Row key="r" store={notes} name="a" />]);
  expect(place.textContent).toBe('a=2 ');
});

const data: Rendered<number> = {
  resources: [
    { key: 'a', revision: '3', value: 1 },
    { key: 'b', revision: '3', value: 2 },
  ],
  revision: '3',
  since: 1000,
};

const Pair = ({ store }: { store: Readable<number> }) => ['a', 'b'].map((name) => <Row key={name} store={store} name={name} />);

test('a server renders it, and the page hydrates that, and renders again what has changed', async () => {
  place.innerHTML = renderToString(<Pair store={renderedStore(data)} />);
  expect(place.textContent).toBe('a=1 b=2 ');
  await notes.snapshot(3, { a: 1, b: 20 });
  const complain = vi.spyOn(console, 'error').mockImplementation(() => {});
  rendered = [];
  const store = hydrating(notes, data);
  await act(async () => {
    root = hydrateRoot(place, <Pair store={store} />);
  });
  expect(complain).not.toHaveBeenCalled();
  expect(rendered).toEqual(['a', 'b', 'b']);
  expect(place.textContent).toBe('a=1 b=20 ');
});

test('a store that begins with a snapshot shows it on a server', () => {
  const begun = notes.line.follow<number>({ watches: [{ watch: 'w', initial: { ...data, position: 'w@e-3' } }] });
  expect(renderToString(<Row store={begun.store('w')} name="b" />)).toBe('<p>b=2<!-- --> </p>');
  begun.close();
});

test('the value has the type of the watch', () => {
  const Typed = ({ store }: { store: Readable<{ text: string }> }) => {
    const resource = useResource(store, 'a');
    expectTypeOf(resource).toEqualTypeOf<Resource<{ text: string }> | undefined>();
    return resource?.value.text;
  };
  expect(Typed).toBeTypeOf('function');
});
