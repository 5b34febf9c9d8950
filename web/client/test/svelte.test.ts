// @vitest-environment happy-dom
import { flushSync, mount, unmount } from 'svelte';
import { expect, test } from 'vitest';
import { useWatch } from '../src/svelte.js';
import Runes from './components/Runes.svelte';
import Store from './components/Store.svelte';
import { Counted, remove, upsert } from './line.js';

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
