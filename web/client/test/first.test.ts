import { expect, test } from 'vitest';
import { canonical, keysOf } from '../src/spec.js';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { endOfSnapshot, hello, pass, reset, upsert } from './server.js';

const asked = (parameter: string, from = f.server) => from.last.url.searchParams.get(parameter);

const f = following();

test('keys are sent as the gateway reads them, and are the same in any order', async () => {
  f.tide = watch(url, { watches: [{ watch: 'w', keys: ['b', 'a,"c"', 'b'] }] });
  await pass();
  expect(asked('keys.w')).toBe('"a,""c""",b');
  expect(f.tide.add({ watch: 'w', keys: ['a,"c"', 'b'] })).toBe(f.tide.store({ watch: 'w', keys: '"a,""c""",b' }));
});

test('a list of no keys is a mistake, since it would mean all resources', () => {
  expect(() => watch(url, { watches: [{ watch: 'w', keys: [] }] })).toThrow('want at least one key, or no keys for all resources');
});

test('a text of keys has the keys of the list that it was made from', () => {
  for (const keys of [['a'], ['a,b', 'c'], ['"', 'a"b', ','], ['', 'x y'].slice(1)])
    expect(keysOf(canonical({ watch: 'w', first: keys }).first)).toEqual(keys);
});

test('what comes first is there before the snapshot, and is not asked for after it', async () => {
  f.tide = watch(url, { watches: [{ watch: 'w', first: ['c', 'a'] }] });
  const store = f.tide.store('w');
  await pass();
  expect(asked('first.w')).toBe('c,a');
  f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'c', 5, 1));
  await pass();
  expect(store.view.first).toBeUndefined(); // it may be half of it
  f.server.last.send(upsert('w', 'a', 5, 2, 'w@e-0/5'));
  await pass();
  const { state, first, resources } = store.view;
  expect([state, [...first!.keys()], resources.size]).toEqual(['priming', ['c', 'a'], 0]);
  f.server.last.send(upsert('w', 'a', 5, 2) + upsert('w', 'b', 5, 3, 'w@e-0/5'));
  await pass();
  expect(store.view.first).toBe(first);
  f.server.last.send(upsert('w', 'c', 5, 1) + endOfSnapshot('w', 5, 3, 'w@e-5'));
  await pass();
  expect([store.view.first, store.resources.size]).toEqual([undefined, 3]);
  f.server.last.cut();
  await pass(2_000);
  expect(f.server.exchanges).toHaveLength(2);
  expect(asked('first.w')).toBeNull();
});

test('what was first of a connection that was lost stays until the next snapshot begins', async () => {
  f.tide = watch(url, { watches: [{ watch: 'w', first: 'a' }] });
  const store = f.tide.store('w');
  await pass();
  f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 5, 1, 'w@e-0/5'));
  await pass();
  f.server.last.cut();
  await pass(2_000);
  expect(asked('first.w')).toBe('a');
  expect(store.view.first?.get('a')?.value).toBe(1);
  f.server.last.accept(hello(['w']) + reset('w', 'w@f-0/9'));
  await pass();
  expect(store.view.first).toBeUndefined();
  f.server.last.send(endOfSnapshot('w', 9, 0, 'w@f-9'));
  await pass();
  expect([store.state, store.resources.size]).toEqual(['in_sync', 0]);
});
