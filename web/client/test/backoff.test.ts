import { describe, expect, test, vi } from 'vitest';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { endOfSnapshot, goodbye, hello, pass, snapshot } from './server.js';

const f = following();

describe('reconnecting', () => {
  test('backs off with jitter, up to half a minute', async () => {
    f.tide = watch(url, { watches: ['w'] });
    const waits = [];
    for (let i = 0; i < 8; i++) {
      await pass();
      const { length } = f.server.exchanges;
      const from = Date.now();
      f.server.last.fail();
      while (f.server.exchanges.length === length) await pass(100);
      waits.push(Date.now() - from);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
    expect(f.tide.store('w').state).toBe('connecting');
  });

  test('forgets its failures after a healthy minute', async () => {
    f.tide = watch(url, { watches: ['w'] });
    for (let i = 0; i < 6; i++) {
      await pass(30_000);
      f.server.last.fail();
    }
    await pass(30_000);
    f.server.last.accept(snapshot('w'));
    for (let s = 0; s < 61; s++) {
      await pass(1_000);
      f.server.last.send(':\n\n');
    }
    f.server.last.cut();
    const { length } = f.server.exchanges;
    await pass(499);
    expect(f.server.exchanges).toHaveLength(length);
    await pass(1);
    expect(f.server.exchanges).toHaveLength(length + 1);
  });

  test('obeys retry', async () => {
    await f.follow();
    f.server.last.send('retry: 7000\n\n');
    await pass();
    f.server.last.cut();
    await pass(6_999);
    expect(f.server.exchanges).toHaveLength(1);
    await pass(1);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('gives goodbye precedence over everything else', async () => {
    await f.follow();
    f.server.last.send(`retry: 7000\n\n${goodbye('draining', 4_210)}`);
    f.server.last.end();
    await pass();
    f.happens('online');
    await pass(4_209);
    expect(f.server.exchanges).toHaveLength(1);
    await pass(1);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('waits as long as each goodbye says, however often it is moved', async () => {
    await f.follow();
    vi.spyOn(Math, 'random').mockReturnValue(0.99);
    for (let moves = 1; moves < 8; moves++) {
      await pass(1_000);
      f.server.last.send(goodbye('draining', 2_000));
      f.server.last.end();
      await pass(1_999);
      expect(f.server.exchanges).toHaveLength(moves);
      await pass(1);
      expect(f.server.exchanges).toHaveLength(moves + 1);
      f.server.last.accept(hello(['w'], 'resume'));
      await pass();
    }
  });

  test.each([
    ['at once', 'draining', 0],
    ['for overload', 'overloaded', 1_000],
  ])('backs off from a server that always says goodbye %s', async (_, reason, lasted) => {
    await f.start();
    const waits = [];
    for (let i = 0; i < 6; i++) {
      const { length } = f.server.exchanges;
      f.server.last.accept(hello(['w'], 'snapshot'));
      await pass(lasted);
      const from = Date.now();
      f.server.last.send(goodbye(reason as 'draining', 100));
      f.server.last.end();
      while (f.server.exchanges.length === length) await pass(100);
      waits.push(Date.now() - from);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
  });

  test('is immediate when the network is back, but rate-limited', async () => {
    await f.follow();
    f.server.last.cut();
    for (let i = 0; i < 5; i++) {
      await pass(15_000);
      f.server.last.fail();
    }
    const { length } = f.server.exchanges;
    await pass(100);
    for (let i = 0; i < 10; i++) f.happens('online');
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(length + 1);
    f.server.last.fail();
    for (let i = 0; i < 10; i++) {
      f.happens('online');
      await pass(50);
    }
    expect(f.server.exchanges).toHaveLength(length + 1);
  });

  test('reports offline since the last byte received', async () => {
    const store = await f.follow();
    await pass(7_000);
    f.server.last.cut();
    await pass();
    expect(store.view).toMatchObject({ state: 'offline', since: 1_000_000, reason: 'terminated' });
    expect(store.resources.size).toBe(1);
    await pass(1_000);
    f.server.last.accept(hello(['w'], 'resume'));
    await pass();
    expect(store.view).toMatchObject({ state: 'stale', since: 1_000_000, reason: 'catching up' });
    f.server.last.send(endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect(store.state).toBe('in_sync');
  });
});
