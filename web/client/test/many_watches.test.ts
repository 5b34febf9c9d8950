import { describe, expect, test } from 'vitest';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { endOfSnapshot, hello, pass, reset, snapshot } from './server.js';
import { open, server, sharing } from './sharing.js';

const room = 20;
const names = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`);

describe('a page with many watches', () => {
  const f = following();

  /** Answers as a gateway whose streams have room for twenty watches, for a while. Returns the number of refusals. */
  async function answer(): Promise<number> {
    let refused = 0;
    for (let round = 0; round < 20; round++) {
      for (const exchange of f.server.exchanges.filter(({ open, signal }) => !open && !signal.aborted)) {
        const { watches } = exchange;
        if (watches.length > room) exchange.refuse(414), refused++;
        else exchange.accept(hello(watches) + watches.map((w) => reset(w, `${w}@e-0/5`) + endOfSnapshot(w, 5, 0, `${w}@e-5`)).join(''));
      }
      await pass(50);
    }
    return refused;
  }

  const streams = () => f.server.exchanges.filter(({ open }) => open);
  const states = (all: string[]) => new Set(all.map((name) => f.tide.store(name).state));

  test.each([25, 100])('%i at first', async (count) => {
    f.tide = watch(url, { watches: names(count) });
    await pass();
    expect(await answer()).toBeLessThan(count / 5);
    expect(states(names(count))).toEqual(new Set(['in_sync']));
    expect(
      streams()
        .flatMap(({ watches }) => watches)
        .sort(),
    ).toEqual(names(count).sort());
  });

  test('one after the other, which does not affect the others', async () => {
    f.tide = watch(url);
    let refused = 0;
    for (const [i, name] of names(45).entries()) {
      f.tide.add(name);
      await pass(50);
      refused += await answer();
      expect(states(names(i + 1))).toEqual(new Set(['in_sync']));
    }
    expect(streams().map(({ watches }) => watches.length)).toEqual(expect.arrayContaining([20, 20, 5]));
    expect(refused).toBe(2);
  });

  test('of which one is removed and added again in one task keep their stream', async () => {
    f.tide = watch(url, { watches: names(2) });
    await pass();
    await answer();
    f.tide.remove('w0');
    f.tide.add('w0');
    await pass(1_000);
    expect([f.server.exchanges.length, f.server.last.signal.aborted]).toEqual([1, false]);
  });

  test('that are removed close their streams', async () => {
    f.tide = watch(url, { watches: names(25) });
    await pass();
    await answer();
    const [first, second] = streams();
    for (const name of second!.watches) f.tide.remove(name);
    await pass(100);
    expect([first!.signal.aborted, second!.signal.aborted]).toEqual([false, true]);
    for (const name of first!.watches) f.tide.remove(name);
    await pass(100);
    expect(streams()).toEqual([]);
  });

  test('keeps the listeners and the rows of a watch that moves', async () => {
    const store = await f.follow();
    const told: string[] = [];
    store.subscribe(({ state, resources }) => told.push(`${state} ${resources.size}`));
    f.tide.add('v');
    await pass(50);
    f.server.last.refuse(414);
    await pass();
    const [w, v] = f.server.exchanges.slice(-2).sort((a, b) => b.watches[0]!.localeCompare(a.watches[0]!));
    expect([w!.watches, v!.watches]).toEqual([['w'], ['v']]);
    w!.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    v!.accept(snapshot('v'));
    await pass();
    expect([f.tide.store('w').state, f.tide.store('v').state]).toEqual(['in_sync', 'in_sync']);
    expect(new Set(told)).toEqual(new Set(['in_sync 1']));
    expect(f.tide.store('w')).toBe(store);
  });

  test('a proxy with too little room for the URL is no different', async () => {
    f.tide = watch(url, { watches: names(2) });
    await pass();
    f.server.last.answer(new Response('too long', { status: 414 }));
    await pass(100);
    expect(f.server.exchanges.slice(1).map(({ watches }) => watches)).toEqual(expect.arrayContaining([['w0'], ['w1']]));
  });

  test('one for which there is no room alone is closed', async () => {
    f.tide = watch(url, { watches: ['w'] });
    await pass();
    f.server.last.refuse(414);
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(1);
    expect(f.tide.store('w').view).toMatchObject({ state: 'closed', error: { status: 414 } });
  });
});

describe('tabs with many watches', () => {
  sharing();

  test('get a second stream', async () => {
    const { tide } = open(names(25));
    await pass();
    server.last.refuse(414);
    await pass(100);
    const [, a, b] = server.exchanges;
    expect([...a!.watches, ...b!.watches].sort()).toEqual(names(25).sort());
    for (const { watches, accept } of [a!, b!].map((one) => ({ watches: one.watches, accept: one.accept.bind(one) }))) {
      accept(hello(watches) + watches.map((w) => reset(w, `${w}@e-0/5`) + endOfSnapshot(w, 5, 0, `${w}@e-5`)).join(''));
    }
    await pass(100);
    expect(new Set(names(25).map((name) => tide.store(name).state))).toEqual(new Set(['in_sync']));
  });
});
