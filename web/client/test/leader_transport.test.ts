import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { dialect } from '../src/port.js';
import { type SharedOptions, watchShared } from '../src/shared.js';
import type { Watches } from '../src/watch.js';
import { Browser, type Tab } from './browser.js';
import { endOfSnapshot, hello, pass, Server, snapshot, upsert } from './server.js';

const url = 'http://gateway.test';

let server: Server;
let browser: Browser;
let tides: Watches[];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_020_000 });
  let n = 0;
  vi.spyOn(Math, 'random').mockImplementation(() => 0.5 + ++n / 1e9);
  server = new Server();
  browser = new Browser();
  tides = [];
});

afterEach(async () => {
  for (const tide of tides) tide.close();
  await pass(200_000); // timers of hidden tabs are late
  expect(browser.locks.held.size).toBe(0);
  expect(browser.channels.size).toBe(0);
  browser.close();
  vi.restoreAllMocks();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function open(options: SharedOptions = {}): { tab: Tab; tide: Watches } {
  const tab = browser.tab();
  const tide = tab.run(() => watchShared(url, { watches: ['w'], ...options }));
  tides.push(tide);
  return { tab, tide };
}

const shown = (tide: Watches) => `${tide.store('w').state} ${[...tide.store('w').resources].map(([key, { value }]) => `${key}=${value}`)}`;

/** Opens this many tabs. The first is the leader, and all show a=1. */
async function share(count: number, options: SharedOptions = {}) {
  const first = open(options);
  await pass();
  server.last.accept(snapshot('w'));
  await pass();
  const others = Array.from({ length: count - 1 }, () => open(options));
  await pass();
  expect(tides.map(shown)).toEqual(Array(count).fill('in_sync a=1'));
  expect(server.exchanges).toHaveLength(1);
  return [first, ...others] as const;
}

/** Advances the clock by this much, while the gateway only sends heartbeats. */
async function wait(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10_000) {
    await pass(Math.min(left, 10_000));
    if (server.last.open) server.last.send(':\n\n');
  }
}

/** Answers the request of the current leader with another value. */
async function answer(value: number): Promise<void> {
  server.last.accept(snapshot('w', value));
  await pass();
}

const leader = () => browser.locks.held.get(`watchtide ${dialect} ${url}`)?.owner;

test('the rate is that of the shared connection, whichever tab holds it', async () => {
  const [first, second] = await share(2, { maxRate: '2/s' });
  expect(server.last.url.searchParams.get('max_rate')).toBe('2/s');
  expect(second!.tide.store('w').view).not.toHaveProperty('maxRate');
  first.tab.kill();
  await pass();
  expect(server.exchanges).toHaveLength(2);
  expect(server.last.url.searchParams.get('max_rate')).toBe('2/s');
  expect(() => open({ maxRate: 'auto' })).toThrow('maxRate is auto: want a rate, such as 2/s or 10/m');
});

test('a leader whose next stream waits for the name of its user stays the leader', async () => {
  const [first, second] = await share(2);
  const states: string[] = [];
  second!.tide.store('w').subscribe(({ state }) => states.push(state));
  const answered = globalThis.fetch;
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    if (url.endsWith('/v1/session')) await new Promise((resolve) => setTimeout(resolve, 8_000));
    return answered(url, init);
  });
  first.tab.run(() => first.tide.add('v'));
  await pass(9_000);
  expect(leader()).toBe(first.tab);
  expect(server.exchanges).toHaveLength(2); // the second one for both watches
  server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
  await pass();
  expect(states).toEqual(['in_sync']);
});

test('six tabs share one connection', async () => {
  await share(6);
  server.last.send(upsert('w', 'b', 6, 2, 'w@e-6'));
  await pass();
  expect(tides.map(shown)).toEqual(Array(6).fill('in_sync a=1,b=2'));
});

test('a tab receives no message for another', async () => {
  await share(3);
  const names = [...browser.channels].map(({ name }) => name);
  expect(new Set(names).size).toBe(1 + 3); // for announcements, and one for each tab
  expect(names.filter((name) => name !== `watchtide ${dialect} ${url}`)).toHaveLength(2 * 3);
});

test('tabs with another name have their own connection', async () => {
  open({ name: 'one' });
  open({ name: 'other' });
  await pass();
  expect(server.exchanges).toHaveLength(2);
});

test('the leader is asked for the token', async () => {
  const getToken = vi.fn(() => 't');
  open({ getToken });
  open({ getToken });
  await pass();
  expect(server.exchanges.map(({ headers }) => headers.get('Authorization'))).toEqual(['Bearer t']);
  expect(getToken).toHaveBeenCalledTimes(3); // each tab asks whose token it has
});

describe('another tab takes over from a leader that', () => {
  test('is closed or crashes', async () => {
    const [first, second, third] = await share(3);
    first.tab.kill();
    await pass();
    expect(leader()).toBe(second!.tab);
    expect(server.exchanges).toHaveLength(2);
    const states: string[] = [];
    third!.tide.store('w').subscribe(({ state }) => states.push(state));
    await answer(2);
    expect([second!, third!].map(({ tide }) => shown(tide))).toEqual(['in_sync a=2', 'in_sync a=2']);
    expect(new Set(states)).toEqual(new Set(['in_sync']));
    second!.tab.kill();
    await pass();
    await answer(3);
    expect(shown(third!.tide)).toBe('in_sync a=3');
    expect(server.exchanges).toHaveLength(3);
  });

  test('is closed, while the gateway cannot be reached', async () => {
    const [first, second] = await share(2);
    first.tab.kill();
    await pass();
    server.last.fail();
    await pass();
    expect(shown(second!.tide)).toBe('offline a=1');
  });

  test('is closed, while the gateway does not answer', async () => {
    const [first, second] = await share(2);
    first.tab.kill();
    await pass(9_000);
    expect(shown(second!.tide)).toBe('offline a=1');
  });

  test('no longer reads', async () => {
    const [first, second] = await share(2);
    first.tide.close();
    await wait(1_000);
    await answer(2);
    expect(leader()).toBe(second!.tab);
    expect(server.exchanges.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    expect(shown(second!.tide)).toBe('in_sync a=2');
  });

  test('is hidden for too long', async () => {
    const [first, second] = await share(2, { hiddenMs: 120_000 });
    first.tab.hide();
    await wait(110_000);
    expect(leader()).toBe(first.tab);
    expect(shown(second!.tide)).toBe('in_sync a=1');
    await wait(80_000);
    expect(leader()).toBe(second!.tab);
    await answer(2);
    expect([first, second!].map(({ tide }) => shown(tide))).toEqual(['offline a=1', 'in_sync a=2']);
    first.tab.show();
    await pass(1_000);
    expect(shown(first.tide)).toBe('in_sync a=2');
    expect(leader()).toBe(second!.tab);
    expect(server.exchanges).toHaveLength(2);
  });

  test('is frozen', async () => {
    const [first, second] = await share(2);
    first.tab.hide();
    first.tab.freeze();
    await pass();
    expect(leader()).toBe(second!.tab);
    await answer(2);
    expect(shown(second!.tide)).toBe('in_sync a=2');
    await wait(300_000);
    first.tab.show();
    first.tab.thaw();
    await pass(2_000);
    expect(shown(first.tide)).toBe('in_sync a=2');
    expect(leader()).toBe(second!.tab);
    expect(server.exchanges.map(({ signal }) => signal.aborted)).toEqual([true, false]);
  });

  test('does not answer, as soon as the other is shown', async () => {
    const [first, second] = await share(2);
    second!.tab.hide();
    first.tab.freeze(true);
    await wait(200_000);
    expect(leader()).toBe(first.tab);
    expect(shown(second!.tide)).toBe('offline a=1');
    second!.tab.show();
    await wait(30_000);
    expect(leader()).toBe(second!.tab);
    await answer(2);
    expect(shown(second!.tide)).toBe('in_sync a=2');
    first.tab.kill();
  });

  test('does not answer; when it does again, it is a candidate', async () => {
    const [first, second, third] = await share(3);
    third!.tab.hide();
    first.tab.freeze(true);
    await wait(30_000);
    expect(leader()).toBe(second!.tab);
    await answer(2);
    expect([second!, third!].map(({ tide }) => shown(tide))).toEqual(['in_sync a=2', 'in_sync a=2']);
    await wait(300_000);
    first.tab.thaw(true); // it is no longer the leader, and finds that out
    await pass(2_000);
    expect(leader()).toBe(second!.tab);
    expect(shown(first.tide)).toBe('in_sync a=2');
    expect(server.exchanges.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    second!.tab.kill();
    third!.tab.kill();
    await pass();
    expect(leader()).toBe(first.tab); // it was a candidate again
    await answer(3);
    expect(shown(first.tide)).toBe('in_sync a=3');
  });
});

describe('a hidden leader, whose timers are late,', () => {
  test('serves a tab that is shown', async () => {
    const [first, second] = await share(2, { hiddenMs: Infinity });
    first.tab.hide();
    const states: string[] = [];
    second!.tide.store('w').subscribe(({ state }) => states.push(state));
    await wait(900_000);
    server.last.send(upsert('w', 'a', 6, 2, 'w@e-6'));
    await pass();
    expect(tides.map(shown)).toEqual(['in_sync a=2', 'in_sync a=2']);
    expect(new Set(states)).toEqual(new Set(['in_sync']));
    expect(server.exchanges).toHaveLength(1);
  });

  test('reconnects as soon as another tab asks', async () => {
    const [first] = await share(2);
    first.tab.hide();
    await wait(1_000);
    server.last.cut();
    await pass();
    expect(tides.map(shown)).toEqual(['offline a=1', 'offline a=1']);
    await pass(11_000);
    expect(server.exchanges).toHaveLength(2);
    expect(server.last.lastEventId).toBe('w@e-5');
  });
});

describe('a single tab resumes from its position after it was', () => {
  async function resumes() {
    await pass(1_000);
    expect(server.exchanges.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    expect(server.last.lastEventId).toBe('w@e-5');
    server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 6, 2) + endOfSnapshot('w', 6, 2, 'w@e-6', true));
    await pass();
    expect(shown(tides[0]!)).toBe('in_sync a=1,b=2');
  }

  test('hidden for too long', async () => {
    const [{ tab }] = await share(1, { hiddenMs: 60_000 });
    tab.hide();
    await wait(200_000);
    expect(leader()).toBeUndefined();
    tab.show();
    await resumes();
  });

  test('frozen', async () => {
    const [{ tab }] = await share(1);
    tab.hide();
    tab.freeze();
    await pass();
    expect(server.last.signal.aborted).toBe(true);
    expect(leader()).toBeUndefined();
    await wait(200_000);
    tab.show();
    tab.thaw();
    await resumes();
  });
});

test('when all tabs are hidden for too long, there is no leader; the next one continues alone', async () => {
  const [first, second] = await share(2, { hiddenMs: 60_000 });
  first.tab.hide();
  second!.tab.hide();
  await wait(200_000);
  expect(leader()).toBeUndefined();
  expect(server.exchanges[0]!.signal.aborted).toBe(true);
  const asked = server.exchanges.length;
  await pass(600_000);
  expect(server.exchanges).toHaveLength(asked);
  second!.tab.show();
  await pass();
  expect(leader()).toBe(second!.tab);
  await answer(2);
  expect(shown(second!.tide)).toBe('in_sync a=2');
});

describe('the connection is', () => {
  test('not that of a worker that cannot be created', async () => {
    const worker = vi.fn(() => {
      throw new TypeError('this document requires TrustedScriptURL');
    });
    vi.stubGlobal('SharedWorker', class {});
    const { tab } = open({ worker });
    await pass();
    expect(worker).toHaveBeenCalledTimes(1);
    expect(leader()).toBe(tab);
  });

  test('not that of a worker whose script does not load', async () => {
    const worker = Object.assign(new EventTarget(), { port: new MessageChannel().port1 });
    vi.stubGlobal('SharedWorker', class {});
    const { tab } = open({ worker: () => worker as unknown as SharedWorker });
    await pass();
    expect(leader()).toBeUndefined();
    worker.dispatchEvent(new Event('error'));
    await pass();
    expect(leader()).toBe(tab);
  });

  test('not that of a worker of another version', async () => {
    const { port1, port2 } = new MessageChannel();
    vi.stubGlobal('SharedWorker', class {});
    const { tab } = open({ worker: () => Object.assign(new EventTarget(), { port: port1 }) as unknown as SharedWorker });
    await pass();
    port2.postMessage({ hub: 'old' });
    await pass();
    expect(leader()).toBe(tab);
  });

  test('not that of a worker that does not answer', async () => {
    const worker = Object.assign(new EventTarget(), { port: new MessageChannel().port1 });
    vi.stubGlobal('SharedWorker', class {});
    const { tab, tide } = open({ worker: () => worker as unknown as SharedWorker });
    await pass(31_000);
    expect(leader()).toBe(tab);
    await answer(2);
    expect(shown(tide)).toBe('in_sync a=2');
  });

  test("the tab's own if the origin has no locks", async () => {
    vi.stubGlobal('navigator', { locks: { request: () => Promise.reject(new DOMException('no', 'SecurityError')) } });
    const { tide } = open({ headers: { 'X-Team': 'tide' } });
    await pass();
    expect(server.last.headers.get('X-Team')).toBe('tide');
    await answer(2);
    expect(shown(tide)).toBe('in_sync a=2');
  });

  test("the tab's own if there is nothing to share it with", async () => {
    vi.stubGlobal('navigator', {});
    const { tide } = open({ headers: { 'X-Team': 'tide' }, getToken: () => 't' });
    await pass();
    expect(Object.fromEntries(server.last.headers)).toMatchObject({ 'x-team': 'tide', authorization: 'Bearer t' });
    await answer(2);
    expect(shown(tide)).toBe('in_sync a=2');
    expect(tide.store('w').position).toBe('w@e-5');
  });
});
