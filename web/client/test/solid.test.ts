// @vitest-environment happy-dom
import { type Accessor, createComponent, createEffect, createRoot, createSignal, For, from } from 'solid-js';
import { insert, render } from 'solid-js/web';
import { expect, expectTypeOf, test } from 'vitest';
import type { Resource } from '../src/resource.js';
import { useCounts, useQuery, useResource, useResources, useWatch, useWindow } from '../src/solid.js';
import { Counted, remove, upsert } from './line.js';
import { countsText, ShownCounts, ShownWindow, textOf } from './live.js';

/** Runs a function in a root; returns what it gives, and what ends the root. */
const rooted = <T>(run: () => T) => createRoot((dispose) => ({ made: run(), dispose }));

test('the view is a signal, until the owner ends', async () => {
  const notes = new Counted();
  const seen: string[] = [];
  const { made: view, dispose } = rooted(() => {
    const view = useWatch(notes);
    createEffect(() => void seen.push(`${view().state} ${view().resources.size}`));
    return view;
  });
  await notes.snapshot(5, { a: 1, b: 2 });
  notes.line.send('w@e-6', remove('b', 6));
  expect(seen).toEqual(['connecting 0', 'in_sync 2', 'in_sync 1']);
  expect(view()).toBe(notes.view);
  expect(notes.listeners).toBe(1);
  dispose();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('from takes a store as it is', async () => {
  const notes = new Counted();
  const { made: view, dispose } = rooted(() => from(notes));
  await notes.snapshot(5, { a: 1 });
  expect(view()?.resources.get('a')?.value).toBe(1);
  dispose();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('what reads one field runs again when that changes, and not for others', async () => {
  const notes = new Counted<{ text: string; done: boolean }>();
  await notes.snapshot(5, { a: { text: 'milk', done: false }, b: { text: 'tea', done: false } });
  const seen: unknown[] = [];
  const { made: resources, dispose } = rooted(() => {
    const resources = useResources(notes);
    createEffect(() => void seen.push(resources.a?.value.text));
    return resources;
  });
  notes.line.send('w@e-6', upsert('b', 6, { text: 'coffee', done: true }));
  notes.line.send('w@e-7', upsert('a', 7, { text: 'milk', done: true }));
  expect(seen).toEqual(['milk']);
  notes.line.send('w@e-8', upsert('a', 8, { text: 'cream', done: true }));
  expect(seen).toEqual(['milk', 'cream']);
  notes.line.send('w@e-9', remove('a', 9));
  expect(seen).toEqual(['milk', 'cream', undefined]);
  notes.line.snapshot(12, { c: { text: 'new', done: false } });
  expect(JSON.parse(JSON.stringify(resources))).toEqual({ c: { key: 'c', revision: '12', value: { text: 'new', done: false } } });
  dispose();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('Solid changes copies, and not what the store has', async () => {
  const notes = new Counted<{ text: string; tags?: string[] }>();
  await notes.snapshot(5, { a: { text: 'milk', tags: ['x'] } });
  const before = notes.view.resources.get('a');
  const { dispose } = rooted(() => useResources(notes));
  notes.line.send('w@e-6', upsert('a', 6, { text: 'cream', tags: ['y', 'z'] }));
  const after = notes.view.resources.get('a');
  notes.line.send('w@e-7', upsert('a', 7, { text: 'butter' }));
  expect(before).toEqual({ key: 'a', revision: '5', value: { text: 'milk', tags: ['x'] } });
  expect(after).toEqual({ key: 'a', revision: '6', value: { text: 'cream', tags: ['y', 'z'] } });
  dispose();
  notes.tide.close();
});

test('keys and fields that objects have are like others, except __proto__', async () => {
  const notes = new Counted<{ readonly constructor: string }>();
  await notes.snapshot(5, JSON.parse('{ "__proto__": 1, "constructor": { "constructor": "a" }, "toString": 3 }'));
  const seen: unknown[] = [];
  const { made: resources, dispose } = rooted(() => {
    const resources = useResources(notes);
    createEffect(() => void seen.push(resources['constructor' as string]?.value.constructor));
    return resources;
  });
  expect(Object.keys(resources).sort()).toEqual(['constructor', 'toString']);
  notes.line.send('w@e-6', upsert('constructor', 6, { constructor: 'b' }));
  notes.line.send('w@e-7', remove('toString', 7));
  expect(seen).toEqual(['a', 'b']);
  expect(Object.keys(resources)).toEqual(['constructor']);
  dispose();
  notes.tide.close();
});

test('of 10,000 rows, those whose key has changed are rendered', async () => {
  const notes = new Counted();
  const names = Array.from({ length: 10_000 }, (_, i) => `k${i}`);
  await notes.snapshot(1, Object.fromEntries(names.map((name, i) => [name, i])));
  const rendered: string[] = [];
  const Row = ({ name }: { name: string }) => {
    const resource = useResource(notes, name);
    const row = document.createElement('p');
    insert(row, () => {
      rendered.push(name);
      return `${name}=${resource()?.value ?? 'none'} `;
    });
    return row;
  };
  const place = document.createElement('div');
  const dispose = render(() => createComponent(For, { each: names, children: (name: string) => createComponent(Row, { name }) }), place);
  expect([rendered.length, notes.listeners]).toEqual([10_000, 1]);
  rendered.length = 0;
  notes.line.send('w@e-4', upsert('k7', 2, -1), remove('k8', 3), upsert('k9', 4, -3));
  expect(rendered.sort()).toEqual(['k7', 'k8', 'k9']);
  expect(place.textContent?.slice(0, 100)).toContain('k6=6 k7=-1 k8=none k9=-3 k10=10 ');
  dispose();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('a resource goes and comes back, and is that of the store, until the owner ends', async () => {
  const notes = new Counted();
  const seen: unknown[] = [];
  const { made: resource, dispose } = rooted(() => {
    const resource = useResource(notes, 'a');
    createEffect(() => void seen.push(resource()?.value));
    return resource;
  });
  expectTypeOf(resource).toEqualTypeOf<Accessor<Resource<number> | undefined>>();
  await notes.snapshot(1, { a: 1, b: 2 });
  expect(resource()).toBe(notes.view.resources.get('a'));
  notes.line.snapshot(1, { a: 1, b: 3 }, 'behind'); // the same
  notes.line.send('w@e-2', remove('a', 2));
  notes.line.send('w@e-3', upsert('a', 3, 3));
  notes.line.snapshot(9, {}, 'behind');
  expect(seen).toEqual([undefined, 1, undefined, 3, undefined]);
  dispose();
  notes.line.send('w@e-10', upsert('a', 10, 10));
  expect([seen.length, notes.listeners]).toEqual([5, 0]);
  notes.tide.close();
});

test('a resource follows another key and another store, and nothing sees the one with the other', async () => {
  const [a, b] = [new Counted(), new Counted()];
  await a.snapshot(1, { x: 1, y: 2 });
  await b.snapshot(9, { y: 9 });
  const [store, setStore] = createSignal(a);
  const [key, setKey] = createSignal('x');
  const seen: unknown[] = [];
  const { dispose } = rooted(() => {
    const resource = useResource(store, key);
    createEffect(() => void seen.push(`${key()} ${resource()?.key} ${resource()?.value}`));
  });
  setKey('y');
  setStore(b);
  expect(seen).toEqual(['x x 1', 'y y 2', 'y y 9']);
  expect([a.listeners, b.listeners]).toEqual([0, 1]);
  dispose();
  expect(b.listeners).toBe(0);
  a.tide.close();
  b.tide.close();
});

test('a query follows its store, other options and another store, until the owner ends', async () => {
  const [a, b] = [new Counted(), new Counted()];
  await a.snapshot(5, { x: 1, y: 2, z: 3 });
  await b.snapshot(9, { b: 9 });
  const [store, setStore] = createSignal(a);
  const [least, setLeast] = createSignal(2);
  const options = () => {
    const from = least();
    const filter = ({ value }: Resource<number>) => value >= from;
    return { filter, compare: (one: Resource<number>, other: Resource<number>) => other.value - one.value };
  };
  const seen: string[] = [];
  const { dispose } = rooted(() => {
    const view = useQuery(store, options);
    createEffect(() => void seen.push([...view().rows].map(({ key, value }) => `${key}=${value}`).join()));
  });
  a.line.send('w@e-6', upsert('x', 6, 7), remove('y', 6));
  setLeast(5);
  setStore(b);
  expect(seen).toEqual(['z=3,y=2', 'x=7,z=3', 'x=7', 'b=9']);
  expect([a.listeners, b.listeners]).toEqual([0, 1]);
  dispose();
  expect([seen.length, b.listeners]).toEqual([4, 0]);
  a.tide.close();
  b.tide.close();
});

test('the views of a window and of counts are signals, also of another one', () => {
  const [page, next, counts] = [new ShownWindow(7, 'a'), new ShownWindow(9, 'x'), new ShownCounts({ up: 2 })];
  const [shown, setShown] = createSignal(page);
  const seen: string[] = [];
  const { dispose } = rooted(() => {
    const [rows, states] = [useWindow(shown), useCounts(counts)];
    createEffect(() => void seen.push(`${textOf(rows())}, ${countsText(states())}`));
  });
  page.set(8, 'a', 'b');
  counts.set({ down: 1, up: 2 });
  setShown(next);
  expect(seen).toEqual(['a of 7, up=2 of 2', 'a,b of 8, up=2 of 2', 'a,b of 8, down=1,up=2 of 3', 'x of 9, down=1,up=2 of 3']);
  expect([page.listeners, next.listeners, counts.listeners]).toEqual([0, 1, 1]);
  dispose();
  expect([next.listeners, counts.listeners]).toEqual([0, 0]);
});
