import { describe, expect, test, vi } from 'vitest';
import { following } from './following.js';
import { endOfSnapshot, goodbye, hello, pass, reset, snapshot, upsert, wire } from './server.js';

const f = following();

const day = 86_400_000;

describe('a time that no timer can measure', () => {
  test('in Retry-After is waited for, and is not a time of zero', async () => {
    await f.start();
    f.server.last.refuse(503, { 'Retry-After': String((30 * day) / 1_000) });
    await pass(20 * day);
    expect(f.server.exchanges).toHaveLength(1);
  });

  test('in a goodbye is waited for', async () => {
    await f.follow();
    await pass(2_000);
    f.server.last.send(goodbye('draining', 30 * day));
    f.server.last.end();
    await pass(20 * day);
    expect(f.server.exchanges).toHaveLength(1);
  });

  test('in hiddenMs does not close the stream of a tab that is hidden for a moment', async () => {
    const store = await f.follow({ hiddenMs: Number.MAX_SAFE_INTEGER });
    f.visibility(true);
    f.server.last.send(': \n\n');
    await pass(20_000);
    expect([store.state, f.server.exchanges.length]).toEqual(['in_sync', 1]);
  });
});

test.each([undefined, null, 0, -1, 'often', 1e300])(
  'a heartbeat of %j neither ends the stream nor keeps the page busy',
  async (heartbeat_ms) => {
    const store = await f.start();
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const first = wire({ type: 'hello', heartbeat_ms, watches: [] } as never);
    f.server.last.accept(first + reset('w', 'w@e-0/5') + endOfSnapshot('w', 5, 0, 'w@e-5'));
    await pass(20_000);
    expect([store.state, f.server.exchanges.length]).toEqual(['in_sync', 1]);
    expect(timers.mock.calls.length).toBeLessThan(10);
  },
);

test.each([undefined, null, 0, -1, 'often', {}, [], 1e-300])(
  'retry_ms of %j in each goodbye keeps neither the page nor the server busy',
  async (retry_ms) => {
    await f.start();
    for (let i = 0; i < 600; i++) {
      const { last } = f.server;
      if (!last.open && !last.signal.aborted) last.accept(hello(['w']) + goodbye('draining', retry_ms as never)).end();
      await pass(100);
    }
    expect(f.server.exchanges.length).toBeLessThan(20);
  },
);

test('times that parse returns as bigint are times', async () => {
  const parse = (json: string) => JSON.parse(json, (_, value) => (typeof value === 'number' ? BigInt(value) : value));
  const store = await f.start({ parse });
  f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + endOfSnapshot('w', 5, 0, 'w@e-5'));
  await pass(2_000);
  expect(store.state).toBe('in_sync');
  f.server.last.send(goodbye('draining', 4_000));
  f.server.last.end();
  await pass(3_900);
  expect(f.server.exchanges).toHaveLength(1);
  await pass(200);
  expect(f.server.exchanges).toHaveLength(2);
});

test('a status since nobody knows when is of now', async () => {
  const store = await f.follow();
  const status = { type: 'status', watch: 'w', state: 'stale', since: 'yesterday', reason: 'r' };
  f.server.last.send(wire(status as never, 'w@e-5'));
  await pass();
  expect(store.view).toMatchObject({ state: 'stale', since: Date.now(), reason: 'r' });
});

describe('a stream of nonsense', () => {
  test.each([
    ['text', 'data: nonsense\n\n'],
    ['null', 'data: null\n\n'],
    ['a number', 'data: 7\n\n'],
    ['a list', 'data: [1]\n\n'],
    ['an event without a type', 'data: {}\n\n'],
    ['an event of another watch', upsert('nobody', 'k', 1, 1, 'nobody@e-1')],
    ['an upsert without a key', 'data: {"type":"upsert","watch":"w"}\n\n'],
    ['an end of a snapshot that has not begun', endOfSnapshot('w', 9, 9, 'w@e-9')],
    ['bytes', '\ufffd\u0000'.repeat(100)],
  ])('%s: the rows stay, and the next stream goes on', async (_, nonsense) => {
    const store = await f.follow();
    const rows = [...store.resources];
    f.server.last.send(nonsense);
    await pass();
    expect([...store.resources]).toEqual(rows);
    f.server.last.cut();
    await pass(60_000);
    f.server.last.accept(snapshot('w'));
    await pass();
    expect([store.state, [...store.resources]]).toEqual(['in_sync', rows]);
  });

  test('that ends at once again and again is asked for more and more rarely', async () => {
    await f.start();
    for (let second = 0; second < 600; second++) {
      const { last } = f.server;
      if (!last.open && !last.signal.aborted) last.accept(hello(['w']) + reset('w', 'w@e-0/5')).end();
      await pass(1_000);
    }
    expect(f.server.exchanges.length).toBeLessThan(50);
  });
});

describe('a clock that is set back', () => {
  const setBack = () => vi.setSystemTime(Date.now() - 3_600_000);

  test('does not keep a tab away that is shown again', async () => {
    await f.follow();
    f.happens('freeze');
    await pass(1_000);
    setBack();
    f.happens('resume');
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('does not keep a dead stream', async () => {
    await f.follow();
    setBack();
    await pass(61_000);
    expect(f.server.exchanges.length).toBeGreaterThan(1);
  });
});
