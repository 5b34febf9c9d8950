import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { Stores } from '../src/stores.js';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { type Exchange, endOfSnapshot, hello, pass, reset, upsert } from './server.js';

const f = following();

const red = { watch: 'w', labels: 'team=red', fields: ['state', 'node'] };
const slow = { watch: 'w', filter: 'value.ms > 100' };

const opened = () => f.server.exchanges.filter(({ open }) => open);

async function answer(exchange: Exchange, epoch: string, value: unknown): Promise<void> {
  exchange.accept(hello(['w']) + reset('w', `w@${epoch}-0/5`) + upsert('w', 'a', 5, value) + endOfSnapshot('w', 5, 1, `w@${epoch}-5`));
  await pass();
}

const values = (spec: Parameters<typeof f.tide.store>[0]) => [...f.tide.store(spec).resources.values()].map(({ value }) => value);

test('what narrows a watch is sent as it was given', async () => {
  f.tide = watch(url, {
    watches: [
      'v',
      { watch: 'w', prefix: 'eu/', labels: 'app in (web, shop)', filter: 'value.a && key != "b"', fields: ['state', 'tags."a,b"'] },
    ],
  });
  await pass();
  expect([...f.server.last.url.searchParams]).toEqual([
    ['watch', 'v'],
    ['watch', 'w'],
    ['prefix.w', 'eu/'],
    ['labels.w', 'app in (web, shop)'],
    ['filter.w', 'value.a && key != "b"'],
    ['fields.w', 'state,tags."a,b"'],
  ]);
});

test('one watch is followed in several parts at once, each with a stream, a store and a position of its own', async () => {
  f.tide = watch(url, { watches: ['w', red, slow, 'v'] });
  await pass();
  expect(f.server.exchanges.map(({ url }) => url.search)).toEqual([
    '?watch=w&watch=v',
    '?watch=w&labels.w=team%3Dred&fields.w=state%2Cnode',
    '?watch=w&filter.w=value.ms+%3E+100',
  ]);
  const [whole, reds, slows] = f.server.exchanges as [Exchange, Exchange, Exchange];
  await answer(whole, 'e', 'all');
  await answer(reds, 'r', 'red');
  await answer(slows, 's', 'slow');
  expect([values('w'), values(red), values(slow)]).toEqual([['all'], ['red'], ['slow']]);
  expect([f.tide.store('w'), f.tide.store(red), f.tide.store(slow)].map(({ position }) => position)).toEqual(['w@e-5', 'w@r-5', 'w@s-5']);
  reds.cut();
  await pass();
  expect([f.tide.store('w').state, f.tide.store(red).state]).toEqual(['in_sync', 'offline']);
  await pass(2_000);
  expect(f.server.last.url.search).toBe(reds.url.search);
  expect(f.server.last.lastEventId).toBe('w@r-5');
});

test('the same definition is the same store', async () => {
  await f.start({ watches: ['w', slow] });
  expect(f.tide.add({ filter: 'value.ms > 100', watch: 'w', prefix: '' })).toBe(f.tide.store(slow));
  expect(f.tide.add('w')).toBe(f.tide.store({ watch: 'w' }));
  await pass(100);
  expect(f.server.exchanges).toHaveLength(2);
});

test('a part is removed alone, and its connection is used for the next one', async () => {
  await f.follow();
  const store = f.tide.add(slow);
  await pass();
  await answer(f.server.last, 's', 'slow');
  f.tide.remove(slow);
  expect(store.state).toBe('closed');
  expect(() => f.tide.store(slow)).toThrow('the watch w is not followed: add it');
  expect(f.tide.store('w').state).toBe('in_sync');
  const next = f.tide.add(red);
  await pass(50);
  expect(opened()).toHaveLength(1);
  expect(f.server.last.url.searchParams.get('labels.w')).toBe('team=red');
  await answer(f.server.last, 'r', 'red');
  expect([values('w'), values(red), next.state]).toEqual([[1], ['red'], 'in_sync']);
});

test('events that were requested for one definition never reach the store of another', async () => {
  await f.follow();
  const { last } = f.server;
  f.tide.remove('w');
  const part = f.tide.add(slow);
  last.send(reset('w', 'w@e-0/6', 'expired') + upsert('w', 'b', 6, 'of the whole watch') + endOfSnapshot('w', 6, 1, 'w@e-6'));
  await pass();
  expect([part.state, part.resources.size, part.position]).toEqual(['priming', 0, '']);
  await pass(50);
  await answer(f.server.last, 's', 'slow');
  expect(values(slow)).toEqual(['slow']);
});

test('a store that was replaced by another part of its watch is not resumed without its resources', async () => {
  await f.follow();
  f.tide.remove('w');
  f.tide.add(slow);
  f.tide.remove(slow);
  const store = f.tide.add('w');
  await pass(50);
  await pass();
  expect(f.server.exchanges).toHaveLength(1); // it is the same stream
  f.server.last.send(upsert('w', 'b', 6, 2, 'w@e-6'));
  await pass();
  expect([store.state, values('w')]).toEqual(['in_sync', [1, 2]]);
});

test('a filter that the gateway refuses closes only its own watch, with the text of the gateway', async () => {
  const store = await f.follow();
  const wrong = f.tide.add({ watch: 'v', filter: 'value = 1' });
  await pass(50);
  const detail = 'filter, column 7: = is no operator: did you mean ==?';
  f.server.last.refuse(400, {}, { status: 400, title: 'Bad Request', detail, watch: 'v', parameter: 'filter.v' });
  await pass();
  expect(wrong.view).toMatchObject({ state: 'closed', reason: detail, error: { status: 400, problem: { parameter: 'filter.v' } } });
  f.server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
  await pass(600_000);
  expect(store.state).not.toBe('closed');
  expect(f.server.exchanges.filter(({ watches }) => watches.includes('v'))).toHaveLength(1);
});

test('a refusal that names no watch closes the stores of its own connection', async () => {
  const store = await f.follow();
  const part = f.tide.add(slow);
  await pass();
  f.server.last.refuse(401);
  await pass();
  expect([store.state, part.view.error]).toMatchObject(['in_sync', { status: 401 }]);
  f.tide.remove(slow);
  const again = f.tide.add(slow); // perhaps with another cookie
  await pass();
  await answer(f.server.last, 's', 'slow');
  expect(again.state).toBe('in_sync');
});

test('a refused connection is not kept once its stores are removed', async () => {
  const connections: Array<WeakRef<object>> = [];
  const { add } = Stores.prototype;
  const spy = vi.spyOn(Stores.prototype, 'add').mockImplementation(function (this: Stores, ...args) {
    if (!connections.some((one) => one.deref() === this)) connections.push(new WeakRef(this));
    return add.apply(this, args);
  });
  await f.follow();
  for (let i = 0; i < 5; i++) {
    f.tide.add(slow);
    await pass();
    f.server.last.refuse(401);
    await pass();
    f.tide.remove(slow);
  }
  f.tide.add(slow);
  await pass();
  spy.mockClear();
  f.server.exchanges.length = 0;
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(connections).toHaveLength(7);
  expect(connections.filter((one) => one.deref())).toHaveLength(2);
});

test('close closes every part, and what is added later', async () => {
  const store = await f.follow();
  const part = f.tide.add(slow);
  await pass();
  f.tide.close();
  await pass();
  expect([store.state, part.state, opened()]).toEqual(['closed', 'closed', []]);
  const asked = f.server.exchanges.length;
  expect([f.tide.add(red).state, f.tide.add('v').state]).toEqual(['closed', 'closed']);
  await pass(100);
  expect(f.server.exchanges).toHaveLength(asked);
});
