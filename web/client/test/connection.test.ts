import { describe, expect, test, vi } from 'vitest';
import type { Store } from '../src/store.js';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { endOfSnapshot, goodbye, hello, pass, reset, status, upsert } from './server.js';

const f = following();

describe('the watchdog', () => {
  test('cuts off a stream that is silent for two heartbeats', async () => {
    const store = await f.follow();
    const first = f.server.last;
    await pass(29_999);
    expect(first.signal.aborted).toBe(false);
    await pass(1);
    expect(first.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'offline', since: 1_000_000, reason: 'nothing was received for 30 s' });
  });

  test('treats a comment as activity', async () => {
    const store = await f.follow();
    for (let i = 0; i < 20; i++) {
      await pass(15_000);
      f.server.last.send(': heartbeat\n\n');
    }
    await pass();
    expect(f.server.exchanges).toHaveLength(1);
    expect(store.state).toBe('in_sync');
  });

  test('uses the heartbeat that hello names', async () => {
    await f.start();
    f.server.last.accept(hello(['w'], 'snapshot', 1_000));
    await pass(2_000);
    expect(f.server.last.signal.aborted).toBe(true);
  });

  test('gives up on a server that does not answer', async () => {
    f.tide = watch(url, { watches: ['w'] });
    await pass(30_000);
    expect(f.server.last.signal.aborted).toBe(true);
  });
});

describe('the replacement of a stream', () => {
  /** Follows w for this time and records its states; then the server says goodbye. */
  async function goodbyeAfter(ms: number) {
    const store = await f.follow();
    const states: string[] = [];
    store.subscribe(({ state }) => states.push(state));
    await pass(ms);
    f.server.last.send(goodbye('draining', 4_000));
    f.server.last.end();
    await pass();
    return { store, states };
  }

  test('is not reported', async () => {
    const { store, states } = await goodbyeAfter(5_000);
    await pass(4_000);
    f.server.last.accept(hello(['w'], 'resume'));
    await pass(1_000);
    f.server.last.send(endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass(10_000);
    expect(states).toEqual(['in_sync']);
    expect(store.view.since).toBe(1_000_000);
  });

  test('is reported if it fails', async () => {
    const { store } = await goodbyeAfter(5_000);
    await pass(4_000);
    f.server.last.fail();
    await pass();
    expect(store.view).toMatchObject({ state: 'offline', since: 1_005_000, reason: 'connection refused' });
  });

  test('is reported if it takes too long', async () => {
    const { store } = await goodbyeAfter(5_000);
    await pass(14_999);
    expect(store.state).toBe('in_sync');
    await pass(1);
    expect(store.view).toMatchObject({ state: 'offline', since: 1_005_000, reason: 'the server said goodbye: draining' });
  });

  test('is reported if it happens again and again', async () => {
    const { store, states } = await goodbyeAfter(5_000);
    for (let i = 0; i < 6; i++) {
      await pass(4_000);
      f.server.last.accept(hello(['w'], 'resume') + goodbye('draining', 4_000)).end();
    }
    await pass();
    expect(states).toEqual(['in_sync', 'offline', 'stale']);
    expect(store.view.since).toBe(1_005_000);
  });

  describe('that has to catch up', () => {
    const seen = (store: Store) => ({ since: store.view.since, reason: store.view.reason, resources: store.resources.size });

    test('is reported as soon as complete changes are not shown', async () => {
      const { store, states } = await goodbyeAfter(5_000);
      await pass(4_000);
      f.server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 6, 1, 'w@e-6/9'));
      await pass(1_000);
      expect([states, seen(store)]).toEqual([['in_sync', 'stale'], { since: 1_009_000, reason: 'catching up', resources: 1 }]);
      f.server.last.send(endOfSnapshot('w', 9, 2, 'w@e-9', true));
      await pass();
      expect([states, seen(store)]).toEqual([['in_sync', 'stale', 'in_sync'], { since: 1_010_000, reason: '', resources: 2 }]);
    });

    test('is reported after 15 s, even if nothing complete arrives', async () => {
      const { store, states } = await goodbyeAfter(5_000);
      await pass(4_000);
      f.server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 6, 1));
      await pass(10_999);
      expect(states).toEqual(['in_sync']);
      await pass(1);
      expect([states, seen(store)]).toEqual([['in_sync', 'stale'], { since: 1_009_000, reason: 'catching up', resources: 1 }]);
    });

    test('is not reported if all of it arrives together', async () => {
      const { store, states } = await goodbyeAfter(5_000);
      await pass(4_000);
      const all = upsert('w', 'b', 6, 1) + endOfSnapshot('w', 9, 2, 'w@e-9', true);
      f.server.last.accept(hello(['w'], 'resume') + all);
      await pass(20_000);
      expect([states, seen(store)]).toEqual([['in_sync', 'in_sync'], { since: 1_000_000, reason: '', resources: 2 }]);
    });
  });

  test('has 15 s, however soon it follows another one that has caught up', async () => {
    const { store, states } = await goodbyeAfter(5_000);
    await pass(4_000);
    f.server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass(10_000);
    f.server.last.send(goodbye('draining', 4_000));
    f.server.last.end();
    await pass(14_999);
    expect(states).toEqual(['in_sync']);
    await pass(1);
    expect(store.view).toMatchObject({ state: 'offline', since: 1_019_000, reason: 'the server said goodbye: draining' });
  });

  test('for other watches is reported if it fails', async () => {
    const store = await f.follow();
    await pass(5_000);
    f.server.last.send(':\n\n');
    f.tide.add('v');
    await pass(50);
    f.server.last.fail();
    await pass();
    expect(store.view).toMatchObject({ state: 'offline', since: 1_005_000, reason: 'connection refused' });
  });

  test('does not hide a later loss, with its own time and reason', async () => {
    const store = await f.follow();
    await pass(5_000);
    f.tide.add('v');
    await pass(50);
    f.server.last.accept(hello(['w', 'v'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass(4_000);
    f.server.last.send(':\n\n');
    await pass();
    f.server.last.cut();
    await pass();
    const lost = { state: 'offline', since: 1_009_050, reason: 'terminated' };
    expect(store.view).toMatchObject(lost);
    await pass(15_000); // its grace would end; the next attempt is not answered
    expect(store.view).toMatchObject(lost);
  });

  test('for other watches is reported if there is no token for it', async () => {
    const getToken = vi
      .fn<() => Promise<string>>()
      .mockResolvedValueOnce('t')
      .mockReturnValue(new Promise(() => {}));
    const store = await f.follow({ getToken });
    f.tide.add('v');
    await pass(15_000 + 50);
    expect(store.view).toMatchObject({ state: 'offline', since: 1_000_000, reason: 'getToken did not answer for 10 s' });
  });
});

describe('the set of watches', () => {
  test('grows in one new request, with the known positions', async () => {
    const store = await f.follow();
    const states: string[] = [];
    store.subscribe(({ state }) => states.push(state));
    const first = f.server.last;
    const v = f.tide.add('v');
    f.tide.add({ watch: 'u', prefix: 'p' });
    await pass(50);
    expect(first.signal.aborted).toBe(true);
    expect(f.server.exchanges).toHaveLength(2);
    expect(f.server.last.url.search).toBe('?watch=w&watch=v&watch=u&prefix.u=p');
    expect(f.server.last.lastEventId).toBe('w@e-5');
    f.server.last.accept(
      hello(['w', 'v', 'u'], 'resume') +
        endOfSnapshot('w', 5, 1, undefined, true) +
        reset('v', 'w@e-5,v@f-0/1') +
        endOfSnapshot('v', 1, 0, 'w@e-5,v@f-1'),
    );
    await pass();
    expect(v.state).toBe('in_sync');
    expect(states).toEqual(['in_sync']);
  });

  test('shrinks in a new request; without watches there is none', async () => {
    const store = await f.follow();
    f.tide.add('v');
    f.tide.remove('w');
    await pass(50);
    expect(f.server.last.watches).toEqual(['v']);
    expect(store.state).toBe('closed');
    f.tide.remove('v');
    await pass(50);
    expect(f.server.last.signal.aborted).toBe(true);
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('a watch that is removed and added again is not sent again', async () => {
    const store = await f.follow();
    f.tide.remove('w');
    await pass(50);
    expect(f.tide.add('w')).toBe(store);
    await pass();
    expect(f.server.last.lastEventId).toBe('w@e-5');
    expect(store.view).toMatchObject({ state: 'stale' });
    f.server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect(store.view).toMatchObject({ state: 'in_sync' });
    expect(store.resources.size).toBe(1);
  });

  test('a watch that is added and removed at once causes no request', async () => {
    await f.follow();
    f.tide.add('v');
    f.tide.remove('v');
    await pass(50);
    expect(f.server.exchanges).toHaveLength(1);
  });
});

describe('a page', () => {
  test('that was suspended checks its stream as soon as it is shown', async () => {
    await f.follow();
    vi.setSystemTime(Date.now() + 3_600_000); // no timer fired meanwhile
    f.visibility(true);
    f.visibility(false);
    await pass();
    expect(f.server.exchanges[0]?.signal.aborted).toBe(true);
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('that is hidden for too long closes its stream, and resumes from its position', async () => {
    const store = await f.follow({ hiddenMs: 10_000 });
    f.visibility(true);
    await pass(10_000);
    expect(f.server.last.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'offline', reason: 'this tab was hidden for too long' });
    f.happens('online');
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(1);
    f.visibility(false);
    await pass();
    expect(f.server.exchanges).toHaveLength(2);
    expect(f.server.last.lastEventId).toBe('w@e-5');
  });

  test('that is hidden for a moment keeps it', async () => {
    await f.follow({ hiddenMs: 10_000 });
    f.visibility(true);
    await pass(9_000);
    f.visibility(false);
    await pass(9_000);
    expect(f.server.last.signal.aborted).toBe(false);
  });
});

describe('closing', () => {
  test('ends the stream, and keeps the resources', async () => {
    const store = await f.follow();
    f.tide.close();
    await pass();
    expect(f.server.last.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'closed', reason: '' });
    expect(store.view.error).toBeUndefined();
    expect(store.resources.size).toBe(1);
  });

  test('during a pause', async () => {
    await f.follow();
    f.server.last.cut();
    await pass();
    f.tide.close();
    await pass(60_000);
    expect(f.server.exchanges).toHaveLength(1);
  });

  test('while a token is being requested', async () => {
    let give = (_: string) => {};
    f.tide = watch(url, {
      watches: ['w'],
      getToken: () =>
        new Promise((resolve) => {
          give = resolve;
        }),
    });
    await pass();
    f.tide.close();
    give('late');
    await pass();
    expect(f.server.exchanges).toHaveLength(0);
  });
});

test('priming reports the state that the server sent', async () => {
  f.tide = watch(url, { watches: ['w'] });
  await pass();
  f.server.last.accept(hello(['w']) + status('w', 'priming', 'no snapshot yet'));
  await pass();
  expect(f.tide.store('w').view).toMatchObject({ state: 'priming', reason: 'no snapshot yet', since: 1_000_000 });
});
