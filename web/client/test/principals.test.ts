import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { endSession } from '../src/auth.js';
import { type SharedOptions, serveTabs, watchShared } from '../src/shared.js';
import type { Watches } from '../src/watch.js';
import { Browser } from './browser.js';
import { Gateway } from './gateway.js';
import { endOfSnapshot, hello, pass, snapshot } from './server.js';

const url = 'http://gateway.test';
let gateway: Gateway;
let browser: Browser;
let tides: Watches[];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  let n = 0;
  vi.spyOn(Math, 'random').mockImplementation(() => 0.5 + ++n / 1e9);
  gateway = new Gateway();
  browser = new Browser();
  vi.stubGlobal(
    'SharedWorker',
    browser.worker(() => serveTabs(url)),
  );
  tides = [];
});

afterEach(async () => {
  for (const tide of tides) tide.close();
  await pass(200_000);
  browser.close();
  vi.restoreAllMocks();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const shown = (tide: Watches) => `${tide.store('w').state} ${[...tide.store('w').resources.values()].map(({ value }) => value)}`;

describe.each([
  ['a worker', true],
  ['a leader', false],
])('of tabs that share %s', (_, hasWorker) => {
  async function open(options: SharedOptions = {}): Promise<Watches> {
    const worker = () => new SharedWorker('tide.worker.js');
    const tide = browser.tab().run(() => watchShared(url, { watches: ['w'], ...(hasWorker && { worker }), ...options }));
    tides.push(tide);
    await pass(10);
    return tide;
  }

  async function accept(value: string): Promise<void> {
    gateway.last.accept(snapshot('w', value));
    await pass(10);
  }

  test('those of one user share a connection', async () => {
    gateway.cookie = { tag: 'alice' };
    const first = await open();
    await accept('of alice');
    const second = await open();
    expect([shown(first), shown(second)]).toEqual(['in_sync of alice', 'in_sync of alice']);
    expect(gateway.streams).toHaveLength(1);
  });

  test('the next user gets nothing of the former one', async () => {
    gateway.cookie = { tag: 'alice' };
    await open();
    await accept('of alice');
    gateway.cookie = { tag: 'bob' };
    const tide = await open();
    expect(shown(tide)).toBe('connecting ');
    expect(gateway.streams).toHaveLength(2);
    await accept('of bob');
    expect(shown(tide)).toBe('in_sync of bob');
  });

  test('the connection of the former user is not continued as the next one', async () => {
    gateway.cookie = { tag: 'alice' };
    const tide = await open();
    await accept('of alice');
    gateway.cookie = { tag: 'bob' };
    gateway.last.cut();
    await pass(60_000);
    expect(gateway.streams).toHaveLength(1);
    expect(tide.store('w').view).toMatchObject({ state: 'closed', error: { status: 401 } });
  });

  test('what the former user has loaded is not shown to the next one', async () => {
    gateway.cookie = { tag: 'alice' };
    const tide = await open();
    await accept('of alice');
    gateway.cookie = { tag: 'bob' };
    const part = tide.add({ watch: 'w', prefix: 'a' });
    await pass(1_000);
    expect(part.view).toMatchObject({ state: 'closed', error: { status: 401 } });
    expect(part.resources.size).toBe(0);
  });

  test('what is kept is erased when another user comes, and at logout', async () => {
    gateway.cookie = { tag: 'alice' };
    for (const end of [() => open(), () => browser.tab().run(() => endSession(url))]) {
      const tide = await open();
      await accept('of alice');
      if (end.toString().includes('endSession')) {
        await end();
        gateway.cookie = { tag: 'alice' };
      } else {
        tide.close();
        gateway.cookie = { tag: 'bob' };
        ((await end()) as Watches).close();
        gateway.cookie = { tag: 'alice' };
      }
      await pass(1_000);
      const again = await open();
      await pass(2_000);
      expect([gateway.last.lastEventId, shown(again)]).toEqual([null, 'connecting ']);
      again.close();
      await pass(2_000);
    }
  });

  test('a token names the user too', async () => {
    gateway.tokens.a = { tag: 'alice' };
    gateway.tokens.b = { tag: 'bob' };
    if (hasWorker) return; // a worker cannot ask its tabs for a token
    await open({ getToken: () => 'a' });
    await accept('of alice');
    const tide = await open({ getToken: ({ expired }) => (expired ? 'b' : 'old') });
    expect(gateway.last.headers.get('Authorization')).toBe('Bearer b');
    await accept('of bob');
    expect(shown(tide)).toBe('in_sync of bob');
  });

  test('a token that does not come is asked for again', async () => {
    gateway.tokens.a = { tag: 'alice' };
    if (hasWorker) return; // a worker cannot ask its tabs for a token
    const getToken = vi
      .fn<() => string | Promise<string>>()
      .mockReturnValueOnce(new Promise(() => {}))
      .mockReturnValue('a');
    const tide = await open({ getToken });
    await pass(10_000);
    expect(tide.store('w').view.reason).toBe('getToken did not answer for 10 s');
    await pass(2_000);
    expect(gateway.streams).toHaveLength(1);
  });

  test('a proxy that answers in place of the gateway is no other user', async () => {
    gateway.cookie = { tag: 'alice' };
    const { fetch } = globalThis;
    vi.stubGlobal('fetch', async () => new Response('<!doctype html>', { status: 404 }));
    const tide = await open();
    expect(shown(tide)).toBe('connecting ');
    vi.stubGlobal('fetch', fetch);
    await pass(1_000);
    gateway.last.accept(hello(['w']) + endOfSnapshot('w', 5, 0, 'w@e-5'));
    await pass(10);
    expect(shown(tide)).not.toContain('closed');
  });
});

test('a gateway is not asked for sessions if the page knows that there are none', async () => {
  const tide = browser.tab().run(() => watchShared(url, { watches: ['w'], tag: null }));
  tides.push(tide);
  await pass(10);
  gateway.last.accept(snapshot('w', 'for all'));
  await pass(10);
  expect([shown(tide), gateway.log]).toEqual(['in_sync for all', []]);
});
