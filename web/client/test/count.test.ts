import { describe, expect, test, vi } from 'vitest';
import { following } from './following.js';
import { endOfSnapshot, hello, pass, remove, reset, snapshot, upsert, wire } from './server.js';

const f = following();

describe('a count of resources that differs from those that arrived', () => {
  test('after a resume: all of the watch is requested again', async () => {
    const onError = vi.fn();
    const store = await f.follow({ onError });
    f.server.last.cut();
    await pass(1_000);
    f.server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 6, 2) + endOfSnapshot('w', 9, 3, 'w@e-9', true));
    await pass();
    expect(store.view).toMatchObject({ state: 'offline', reason: 'w should have 3 resources, and has 2', revision: '5' });
    expect(onError).toHaveBeenLastCalledWith(new Error('w should have 3 resources, and has 2'), { final: false });
    await pass(5_000);
    expect(f.server.last.lastEventId).toBeNull();
    const rows = ['a', 'b', 'c'].map((key) => upsert('w', key, 6, 1));
    f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/9') + rows.join('') + endOfSnapshot('w', 9, 3, 'w@e-9'));
    await pass();
    expect([store.state, [...store.resources.keys()]]).toEqual(['in_sync', ['a', 'b', 'c']]);
  });

  test('after a snapshot that says so each time: nothing is in sync, and the server is asked more and more rarely', async () => {
    const store = await f.start();
    for (let second = 0; second < 600; second++) {
      const { last } = f.server;
      const text = hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 5, 1) + endOfSnapshot('w', 5, 2, 'w@e-5');
      if (!last.open && !last.signal.aborted) last.accept(text);
      await pass(1_000);
      expect(store.state).not.toBe('in_sync');
    }
    expect(f.server.exchanges.length).toBeLessThan(50);
  });

  test('of one of several watches: the others resume', async () => {
    await f.follow({ watches: ['w', 'v', 'w2'] });
    const all = (count: number) => [reset('v', 'w@e-5,v@e-0/5'), upsert('v', 'b', 5, 1), endOfSnapshot('v', 5, count)];
    const rest = [reset('w2', 'w@e-5,v@e-5,w2@e-0/5'), endOfSnapshot('w2', 5, 0, 'w@e-5,v@e-5,w2@e-5')];
    f.server.last.cut();
    await pass(1_000);
    f.server.last.accept([hello(['w', 'v', 'w2']), endOfSnapshot('w', 5, 1, undefined, true), ...all(7), ...rest].join(''));
    await pass();
    await pass(5_000);
    expect(f.server.last.lastEventId).toBe('w@e-5,w2@e-0/5');
  });
});

test('the count is that of all that is held: after deletes, changes and deletes of what was never held', async () => {
  const store = await f.follow();
  f.server.last.cut();
  await pass(1_000);
  const changes = [remove('w', 'x', 6), upsert('w', 'a', 7, 2), upsert('w', 'b', 7, 2), remove('w', 'b', 8), upsert('w', 'c', 8, 1)];
  f.server.last.accept(hello(['w'], 'resume') + changes.join('') + endOfSnapshot('w', 9, 2, 'w@e-9', true));
  await pass();
  expect([store.state, [...store.resources.keys()]]).toEqual(['in_sync', ['a', 'c']]);
});

test.each([undefined, null, 'many', -1, {}])('a count of %j is none', async (count) => {
  const store = await f.start();
  const end = wire({ type: 'end_of_snapshot', watch: 'w', revision: '5', count } as never, 'w@e-5');
  f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 5, 1) + end);
  await pass();
  expect(store.state).toBe('in_sync');
});

test('a snapshot after a wrong one is shown', async () => {
  const store = await f.follow();
  f.server.last.send(reset('w', 'w@e-0/9') + endOfSnapshot('w', 9, 1, 'w@e-9'));
  await pass(5_000);
  expect([store.state, store.resources.size, f.server.last.lastEventId]).toEqual(['offline', 1, null]);
  f.server.last.accept(snapshot('w'));
  await pass();
  expect(store.state).toBe('in_sync');
});
