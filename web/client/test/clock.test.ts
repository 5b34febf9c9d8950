import { describe, expect, test, vi } from 'vitest';
import { following } from './following.js';
import { bookmark, endOfSnapshot, goodbye, hello, pass, snapshot, upsert } from './server.js';

const f = following();
const hour = 3_600_000;
const jumps = [-10 * 365 * 24 * hour, -hour, -10_000, 10_000, hour, 10 * 365 * 24 * hour];
const jump = (ms: number) => vi.setSystemTime(Date.now() + ms);

const resumed = (id: string) => hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, id, true);

describe.each(jumps)('a clock that is set by %i ms', (ms) => {
  test('costs at most one stream, and no row', async () => {
    const store = await f.follow();
    jump(ms);
    f.server.last.send(upsert('w', 'a', 6, 2, 'w@e-6'));
    await pass();
    expect([store.state, store.resources.get('a')?.value]).toEqual(['in_sync', 2]);
    for (let i = 0; i < 30; i++) {
      await pass(10_000);
      if (f.server.last.open) f.server.last.send(bookmark('w', 6, 'w@e-6'));
      else f.server.last.accept(resumed('w@e-6'));
    }
    await pass();
    expect(f.server.exchanges.length).toBeLessThanOrEqual(2);
    expect(store.state).toBe('in_sync');
  });

  test('does not hide silence', async () => {
    const store = await f.follow();
    jump(ms);
    await pass(60_000); // two heartbeats from where it is noticed
    expect(store.state).not.toBe('in_sync');
    expect(f.server.exchanges.length).toBeLessThanOrEqual(4);
  });

  test('while the page waits: it comes back once, and nothing hurries it', async () => {
    const store = await f.follow();
    f.server.last.cut();
    await pass();
    jump(ms);
    const asked = f.server.exchanges.length;
    for (let i = 0; i < 100; i++) {
      f.happens('online');
      f.visibility(i % 2 === 0);
      f.happens('resume');
      await pass(10);
    }
    expect(f.server.exchanges.length - asked).toBeLessThanOrEqual(1);
    f.visibility(false);
    await pass(5_000);
    expect(store.state).toBe('offline');
    f.server.last.accept(resumed('w@e-5'));
    await pass();
    expect(store.state).toBe('in_sync');
  });

  test('during a catch-up: it is not in sync before its end', async () => {
    const store = await f.follow();
    f.server.last.cut();
    await pass(5_000);
    f.server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 7, 1, 'w@e-5/7'));
    await pass();
    jump(ms);
    for (const when of ['online', 'resume', 'pageshow']) f.happens(when);
    await pass();
    expect(store.state).not.toBe('in_sync');
    if (!f.server.last.open) await pass(5_000);
    expect(store.state).not.toBe('in_sync');
    if (!f.server.last.open) f.server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 7, 1, 'w@e-5/7'));
    f.server.last.send(endOfSnapshot('w', 7, 2, 'w@e-7', true));
    await pass();
    expect([store.state, store.resources.size]).toEqual(['in_sync', 2]);
  });

  test('while a server says goodbye again and again', async () => {
    await f.follow();
    const asked = f.server.exchanges.length;
    for (let i = 0; i < 60; i++) {
      jump(i % 2 ? ms : -ms);
      if (f.server.last.open) f.server.last.send(goodbye('draining', 1));
      else f.server.last.accept(snapshot('w') + goodbye('draining', 1));
      f.server.last.end();
      await pass(1_000);
    }
    expect(f.server.exchanges.length - asked).toBeLessThanOrEqual(61);
  });
});
