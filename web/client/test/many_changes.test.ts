import { describe, expect, test } from 'vitest';
import { following } from './following.js';
import { type Exchange, endOfSnapshot, hello, pass, reset } from './server.js';

const f = following();

const whole = (watches: string[]) =>
  hello(watches) + watches.map((name) => reset(name, `${name}@e-0/5`) + endOfSnapshot(name, 5, 0, `${name}@e-5`)).join('');

/** Answers each request for what it asks, after this time. Returns the number of streams that have opened. */
function answerAfter(ms: number, answer = whole): () => number {
  const { exchanges } = f.server;
  let opened = 0;
  const open = (exchange: Exchange) => {
    if (exchange.signal.aborted) return;
    opened++;
    exchange.accept(answer(exchange.watches));
  };
  const accept = (exchange: Exchange) => setTimeout(open, ms, exchange);
  exchanges.forEach(accept);
  exchanges.push = (exchange) => {
    accept(exchange);
    exchanges[exchanges.length] = exchange;
    return exchanges.length;
  };
  return () => opened;
}

/** Closes the page, and lets the last answers come. */
async function end(): Promise<void> {
  f.tide.close();
  await pass(20_000);
}

describe('watches that are added without end', () => {
  test.each([
    [200, 400],
    [300, 400],
    [900, 1_000],
    [50, 400],
    [1_000, 4_000],
    [1_000, 5],
  ])('every %d ms leave each stream the %d ms that it needs', async (everyMs, answerMs) => {
    const store = await f.start();
    const opened = answerAfter(answerMs);
    let shownAt: number | undefined;
    store.subscribe(({ state }) => {
      if (state === 'in_sync') shownAt ??= Date.now();
    });
    for (let at = 0; at < 20_000; at += everyMs) {
      f.tide.add(`w${at}`);
      await pass(everyMs);
    }
    const all = f.server.exchanges.length;
    await end();
    expect(shownAt! - 1_000_000).toBeLessThan(Math.max(1_000, 5 * answerMs));
    expect(opened()).toBeGreaterThan(all / 2 - 4);
    expect(all).toBeLessThan(Math.min(20_000 / everyMs, 20_000 / answerMs) + 10);
  });

  test('are requested soon again after a quiet time', async () => {
    await f.start();
    answerAfter(400);
    for (let i = 0; i < 20; i++) {
      f.tide.add(`w${i}`);
      await pass(200);
    }
    await pass(3_000);
    const { length } = f.server.exchanges;
    f.tide.add('v');
    await pass(60);
    expect(f.server.exchanges.length).toBe(length + 1);
    await end();
  });

  test('do not wait for a watch that cannot catch up', async () => {
    await f.start();
    answerAfter(5, (watches) => hello(watches));
    for (let i = 0; i < 8; i++) {
      f.tide.add(`w${i}`);
      await pass(11_000);
      f.server.last.send(': \n\n');
      expect(f.server.last.watches).toContain(`w${i}`);
    }
    await end();
  });
});

test('a tab that pings its hub brings no request forward', async () => {
  await f.follow();
  for (let i = 0; i < 5; i++) {
    f.tide.add(`w${i}`);
    await pass(200);
  }
  const { length } = f.server.exchanges;
  f.tide.add('v');
  f.tide.check();
  await pass(10);
  expect(f.server.exchanges.length).toBe(length);
});

test('the last watch that is removed ends the stream at once, however long others had to wait', async () => {
  await f.follow();
  for (let i = 0; i < 8; i++) {
    f.tide.add(`w${i}`);
    await pass(1_000);
  }
  const { last } = f.server;
  f.tide.add('v');
  for (const name of ['w', 'v', ...Array.from({ length: 8 }, (_, i) => `w${i}`)]) f.tide.remove(name);
  await pass(60);
  expect(last.signal.aborted).toBe(true);
});
