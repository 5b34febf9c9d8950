import { describe, expect, test } from 'vitest';
import { following } from './following.js';
import { endOfSnapshot, hello, pass } from './server.js';

const f = following();

describe.each([
  ['pagehide', 'pageshow', 'this tab was left'],
  ['freeze', 'resume', 'this tab was frozen'],
])('a page with %s', (leave, back, reason) => {
  test('closes its connection, and resumes when it is back', async () => {
    const store = await f.follow();
    f.happens(leave);
    await pass();
    expect(f.server.last.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'offline', reason });
    await pass(600_000);
    f.happens('online');
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(1);
    f.happens(back);
    await pass();
    expect(f.server.last.lastEventId).toBe('w@e-5');
    f.server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect(store.state).toBe('in_sync');
  });

  test('begins no connection meanwhile', async () => {
    await f.start();
    f.happens(leave);
    await pass(60_000);
    expect(f.server.exchanges).toHaveLength(1);
    f.tide.add('v');
    await pass(60_000);
    expect(f.server.exchanges).toHaveLength(1);
    f.happens(back);
    await pass(1_000);
    expect(f.server.last.watches).toEqual(['w', 'v']);
  });

  test('waits for its token before, and begins no connection with it', async () => {
    let give: (token: string) => void = () => {};
    await f.start({
      getToken: () =>
        new Promise((resolve) => {
          give = resolve;
        }),
    });
    f.happens(leave);
    give('t');
    await pass(5_000);
    expect(f.server.exchanges).toHaveLength(0);
  });
});

test('a tab that was hidden for too long stays away when it thaws', async () => {
  await f.follow({ hiddenMs: 10_000 });
  f.visibility(true);
  await pass(10_000);
  f.happens('freeze');
  f.happens('resume');
  await pass(60_000);
  expect(f.server.exchanges).toHaveLength(1);
  f.visibility(false);
  await pass(1_000);
  expect(f.server.exchanges).toHaveLength(2);
});

test('a first watch waits until the page is back', async () => {
  await f.start({ watches: ['w'] });
  f.tide.remove('w');
  await pass(1_000);
  f.happens('pagehide');
  f.tide.add('w');
  await pass(1_000);
  expect(f.server.exchanges).toHaveLength(1);
  f.happens('pageshow');
  await pass(1_000);
  expect(f.server.exchanges).toHaveLength(2);
});
