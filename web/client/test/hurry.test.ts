import { describe, expect, test } from 'vitest';
import { following } from './following.js';
import { pass } from './server.js';

const f = following();

/** Lets attempts fail for this time, and returns how many there were. */
async function outage(ms: number, each: () => void = () => {}): Promise<number> {
  const { length } = f.server.exchanges;
  for (let left = ms; left > 0; left -= 100) {
    const { last } = f.server;
    if (!last.signal.aborted) last.open ? last.cut() : last.fail();
    await pass(100);
    each();
  }
  return f.server.exchanges.length - length;
}

describe('after a long outage', () => {
  test.each([
    ['hurry', () => f.tide.hurry()],
    ['online', () => f.happens('online')],
    ['visibilitychange', () => f.visibility(false)],
  ])('%s makes the next attempt within a second', async (_, event) => {
    await f.follow();
    await outage(120_000);
    f.server.last.fail();
    await pass(2_000);
    const { length } = f.server.exchanges;
    event();
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(length + 1);
  });

  test.each([
    ['hurry', () => f.tide.hurry()],
    ['online', () => f.happens('online')],
    ['visibilitychange', () => f.visibility(false)],
  ])('%s ten times a second does not make it hammer', async (_, event) => {
    await f.follow();
    expect(await outage(600_000, event)).toBeLessThan(600 / 15 + 20);
  });

  test('streams that open and break at once do not make it hammer', async () => {
    await f.follow();
    const attempts = await outage(600_000, () => {
      f.tide.hurry();
      if (!f.server.last.open && !f.server.last.signal.aborted)
        f.server.last.accept('data: {"type":"hello","heartbeat_ms":15000,"watches":[]}\n\n');
    });
    expect(attempts).toBeLessThan(600 / 15 + 20);
  });
});

test('hurry does not shorten a wait that the server asked for', async () => {
  await f.start();
  f.server.last.refuse(503, { 'Retry-After': '20' });
  await pass(10_000);
  f.tide.hurry();
  await pass(9_999);
  expect(f.server.exchanges).toHaveLength(1);
  await pass(1);
  expect(f.server.exchanges).toHaveLength(2);
});

test('a page that is left does not shorten a wait that the server asked for', async () => {
  await f.start();
  f.server.last.refuse(503, { 'Retry-After': '20' });
  await pass(10_000);
  f.happens('pagehide');
  f.happens('pageshow');
  await pass(9_999);
  expect(f.server.exchanges).toHaveLength(1);
  await pass(1);
  expect(f.server.exchanges).toHaveLength(2);
});

test('hurry does nothing to a stream that is open', async () => {
  await f.follow();
  f.tide.hurry();
  await pass(10_000);
  expect(f.server.exchanges).toHaveLength(1);
});
