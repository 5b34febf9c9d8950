// @vitest-environment happy-dom
import { flushSync, mount, unmount } from 'svelte';
import { get, writable } from 'svelte/store';
import { expect, expectTypeOf, test } from 'vitest';
import { watchCounts } from '../src/counts.js';
import type { Resource } from '../src/resource.js';
import { useQuery, useResource, useWatch } from '../src/svelte.js';
import { watchWindow } from '../src/window.js';
import Query from './components/Query.svelte';
import Rows from './components/Rows.svelte';
import Runes from './components/Runes.svelte';
import Store from './components/Store.svelte';
import Window from './components/Window.svelte';
import WindowRunes from './components/WindowRunes.svelte';
import { Counted, Line, remove, upsert } from './line.js';

test('a store is one of Svelte, so $notes works', async () => {
  const notes = new Counted();
  const target = document.createElement('div');
  const component = mount(Store, { target, props: { notes } });
  flushSync();
  expect(target.textContent).toBe('connecting ');
  await notes.snapshot(5, { a: 1, b: 2 });
  flushSync();
  expect(target.textContent).toBe('in_sync a=1,b=2');
  notes.line.send('w@e-6', remove('a', 6));
  flushSync();
  expect(target.textContent).toBe('in_sync b=2');
  await unmount(component);
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test.each([
  ['as stores of Svelte', Window],
  ['with runes', WindowRunes],
])('windows and counts are shown %s', async (_, shows) => {
  const [rows, groups] = [new Line(), new Line()];
  const page = watchWindow(rows.follow({ watches: [] }), { watch: 'w', order: 'n', limit: 2 });
  const states = watchCounts(groups.follow({ watches: [] }), { watch: 'w', by: 's' });
  const target = document.createElement('div');
  const component = mount(shows, { target, props: { page, states } });
  const shown = () => {
    flushSync();
    return target.textContent;
  };
  expect(shown()).toBe(' of 0, ');
  await Promise.all([rows.opened, groups.opened]);
  rows.snapshot(5, { b: { n: 2 }, a: { n: 1 } });
  groups.snapshot(5, { up: { count: 2 } });
  expect(shown()).toBe('a,b of 0, up=2');
  rows.send('w@e-6', upsert('c', 6, { n: 0 }), remove('b', 6), {
    type: 'bookmark',
    watch: 'w',
    revision: '6',
    total: 3,
    before: 0,
  });
  groups.send('w@e-6', upsert('down', 6, { count: 1 }));
  expect(shown()).toBe('c,a of 3, down=1,up=2');
  expect([get(page).total, get(states).total]).toEqual([3, 3]);
  await unmount(component);
  for (const live of [page, states]) live.close();
});

test('with runes, what is derived follows, and nothing is subscribed to after that', async () => {
  const notes = new Counted();
  const target = document.createElement('div');
  const component = mount(Runes, { target, props: { notes } });
  flushSync();
  expect(target.textContent).toBe('connecting 0');
  await notes.snapshot(5, { a: 1, b: 2 });
  flushSync();
  expect(target.textContent).toBe('in_sync 3');
  for (let revision = 6; revision < 50; revision++) {
    notes.line.send(`w@e-${revision}`, upsert('a', revision, revision));
    flushSync();
    expect(target.textContent).toBe(`in_sync ${revision + 2}`);
  }
  expect(notes.listeners).toBe(1);
  await unmount(component);
  await Promise.resolve();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('outside of effects, current is the current view, without a subscription', async () => {
  const notes = new Counted();
  const view = useWatch(notes);
  expect(view.current.state).toBe('connecting');
  await notes.snapshot(5, { a: 1 });
  expect(view.current).toBe(notes.view);
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

/** Mounts a row for each name. */
function rows(notes: Counted, names: string[]) {
  const target = document.createElement('div');
  const rendered: string[] = [];
  const page = writable({ notes, names });
  const component = mount(Rows, { target, props: { page, rendered } });
  flushSync();
  const end = async () => {
    await unmount(component);
    await Promise.resolve();
  };
  return { target, rendered, page, end };
}

test('of 10,000 rows, those whose key has changed are rendered', async () => {
  const notes = new Counted();
  const names = Array.from({ length: 10_000 }, (_, i) => `k${i}`);
  await notes.snapshot(1, Object.fromEntries(names.map((name, i) => [name, i])));
  const { target, rendered, end } = rows(notes, names);
  expect([rendered.length, notes.listeners]).toEqual([10_000, 1]);
  rendered.length = 0;
  notes.line.send('w@e-4', upsert('k7', 2, -1), remove('k8', 3), upsert('k9', 4, -3));
  flushSync();
  expect(rendered.sort()).toEqual(['k7', 'k8', 'k9']);
  expect(target.textContent?.slice(0, 100)).toContain('k6=6;k7=-1;none;k9=-3;k10=10;');
  await end();
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('a resource comes, goes and comes back, is not rendered for a reset that changes nothing, and follows another key and store', async () => {
  const [notes, others] = [new Counted(), new Counted()];
  await others.snapshot(9, { b: 9 });
  const { target, rendered, page, end } = rows(notes, ['a']);
  const shown = () => {
    flushSync();
    return target.textContent;
  };
  expect(shown()).toBe('none;');
  await notes.snapshot(1, { a: 1, b: 2 });
  expect(shown()).toBe('a=1;');
  const before = rendered.length;
  notes.line.snapshot(1, { a: 1, b: 3 }, 'behind');
  expect([shown(), rendered.length]).toEqual(['a=1;', before]);
  notes.line.send('w@e-2', remove('a', 2));
  expect(shown()).toBe('none;');
  notes.line.send('w@e-3', upsert('a', 3, 3));
  expect(shown()).toBe('a=3;');
  notes.line.snapshot(8, { b: 8 }, 'behind');
  expect(shown()).toBe('none;');
  page.set({ notes, names: ['b'] });
  expect(shown()).toBe('b=8;');
  page.set({ notes: others, names: ['b'] });
  expect(shown()).toBe('b=9;');
  await Promise.resolve();
  expect([notes.listeners, others.listeners]).toEqual([0, 1]);
  await end();
  expect(others.listeners).toBe(0);
  notes.tide.close();
  others.tide.close();
});

test('outside of effects, a resource is the current one, without a subscription', async () => {
  const notes = new Counted();
  const resource = useResource(notes, 'a');
  expectTypeOf(resource.current).toEqualTypeOf<Resource<number> | undefined>();
  expect(resource.current).toBeUndefined();
  await notes.snapshot(5, { a: 1 });
  expect(resource.current).toBe(notes.view.resources.get('a'));
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});

test('a query follows its store, other options and another store, and nothing is subscribed to after that', async () => {
  const [a, b] = [new Counted(), new Counted()];
  const from = (least: number) => (one: Resource<number>) => one.value >= least;
  const target = document.createElement('div');
  const page = writable({ notes: a, filter: from(2) });
  const component = mount(Query, { target, props: { page } });
  const shown = () => {
    flushSync();
    return target.textContent;
  };
  expect(shown()).toBe('connecting ');
  await a.snapshot(5, { x: 1, y: 2, z: 3 });
  await b.snapshot(9, { b: 9 });
  expect(shown()).toBe('in_sync z=3,y=2');
  a.line.send('w@e-6', upsert('x', 6, 7), remove('y', 6));
  expect(shown()).toBe('in_sync x=7,z=3');
  page.set({ notes: a, filter: from(5) });
  expect(shown()).toBe('in_sync x=7');
  page.set({ notes: b, filter: from(5) });
  expect(shown()).toBe('in_sync b=9');
  await Promise.resolve();
  expect([a.listeners, b.listeners]).toEqual([0, 1]);
  await unmount(component);
  await Promise.resolve();
  expect(b.listeners).toBe(0);
  expect(useQuery(b).current.rows.size).toBe(1);
  expect(b.listeners).toBe(0);
  a.tide.close();
  b.tide.close();
});
