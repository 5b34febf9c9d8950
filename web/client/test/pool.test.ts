import { beforeEach, expect, test } from 'vitest';
import { type Pool, pool } from '../src/pool.js';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { pass, snapshot } from './server.js';

const f = following();
let stores: Pool;

beforeEach(() => {
  f.tide = watch(url);
  stores = pool(f.tide);
});

const followed = (name: string) => {
  try {
    return f.tide.store(name).state !== 'closed';
  } catch {
    return false;
  }
};

test('all uses of the same definition have one store, which stays until some time after the last one', async () => {
  const one = stores.use('w');
  const two = stores.use({ watch: 'w', prefix: '' });
  const part = stores.use({ watch: 'w', labels: 'a=b' });
  expect([one.store === two.store, one.store === part.store]).toEqual([true, false]);
  one.release();
  one.release();
  await pass(20_000);
  expect(followed('w')).toBe(true);
  two.release();
  await pass(9_999);
  expect(followed('w')).toBe(true);
  await pass(1);
  expect([followed('w'), two.store.state, part.store.state]).toEqual([false, 'closed', 'connecting']);
  part.release();
  stores.clear();
  expect(part.store.state).toBe('closed');
});

test('a use within that time finds the store with its rows', async () => {
  const one = stores.use('w');
  await pass();
  f.server.last.accept(snapshot('w'));
  await pass();
  one.release();
  await pass(5_000);
  const two = stores.use('w');
  await pass(60_000);
  expect([two.store === one.store, two.store.resources.size]).toEqual([true, 1]);
  two.release();
  stores.clear();
});

test('of the watches without a use, only the last stay', () => {
  for (let i = 0; i < 30; i++) stores.use(`w${i}`).release();
  expect(Array.from({ length: 30 }, (_, i) => i).filter((i) => followed(`w${i}`))).toEqual([26, 27, 28, 29]);
  expect([stores.follows('w29'), stores.follows('w0')]).toEqual([true, false]);
  stores.clear();
  expect([followed('w29'), stores.follows('w29')]).toEqual([false, false]);
});

test('a watch that was refused is followed again, and the end of its uses does not end those of the next', async () => {
  const one = stores.use('w');
  await pass();
  f.server.last.refuse(404, {}, { status: 404, title: 'Not Found', detail: 'no such watch', watch: 'w' });
  await pass();
  expect(one.store.view.error).toBeDefined();
  const two = stores.use('w');
  expect(two.store.state).toBe('connecting');
  one.release();
  await pass(20_000);
  expect(followed('w')).toBe(true);
  two.release();
  stores.clear();
});

test('pools of the same watches count together', async () => {
  const other = pool(f.tide, { lingerMs: 0 });
  const one = stores.use('w');
  const two = other.use('w');
  two.release();
  await pass(1_000);
  expect([one.store === two.store, followed('w')]).toEqual([true, true]);
  one.release();
  await pass(20_000);
  expect(followed('w')).toBe(false);
  expect(other.use('w').store.state).toBe('connecting');
});

test('a watch that the page itself follows stays followed', async () => {
  f.tide.add('w');
  const { store, release } = stores.use('w');
  release();
  await pass(20_000);
  expect([store.state, stores.follows('w')]).toEqual(['connecting', false]);
});

test('a watch that the page adds after the pool stays followed, until the page removes it', async () => {
  const one = stores.use('w');
  const store = f.tide.add('w');
  one.release();
  await pass(20_000);
  expect([store === one.store, followed('w')]).toEqual([true, true]);
  stores.use('w').release();
  stores.clear();
  expect(followed('w')).toBe(true);
  f.tide.remove('w');
  stores.use('w').release();
  stores.clear();
  expect(followed('w')).toBe(false);
});

test('a use of a watch that the page has removed follows it again, and its end takes no store of the page', async () => {
  const one = stores.use('w');
  f.tide.remove('w');
  expect(one.store.state).toBe('closed');
  const two = stores.use('w');
  expect(two.store.state).toBe('connecting');
  f.tide.remove('w');
  await pass(1_000);
  f.tide.add('w');
  two.release();
  one.release();
  stores.clear();
  expect(followed('w')).toBe(true);
});

test('a time without an end is one', async () => {
  stores = pool(f.tide, { lingerMs: Infinity });
  const { store, release } = stores.use('w');
  release();
  await pass(86_400_000);
  expect(store.state).toBe('connecting');
  stores.clear();
  expect(store.state).toBe('closed');
});
