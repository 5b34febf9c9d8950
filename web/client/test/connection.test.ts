import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { NotAStreamError, RefusedError } from '../src/errors.js';
import { watch, type Watches } from '../src/watch.js';
import { endOfSnapshot, goodbye, hello, pass, reset, Server, snapshot, status, upsert } from './server.js';

const url = 'http://gateway.test/live/';

let server: Server;
let tide: Watches;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  server = new Server();
});

afterEach(async () => {
  tide?.close();
  await pass();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  expect(vi.getTimerCount()).toBe(0);
});

/** Follows w, and lets the first snapshot arrive. */
async function follow(options = {}) {
  tide = watch(url, { watches: ['w'], ...options });
  await pass();
  server.last.accept(snapshot('w'));
  await pass();
  return tide.store('w');
}

describe('a request', () => {
  test('asks for all watches at once, and says what it takes', async () => {
    tide = watch(url, { watches: ['a', { watch: 'b', prefix: 'x/' }], headers: { 'X-Team': 'tide' } });
    tide.add('c');
    await pass();
    expect(server.exchanges).toHaveLength(1);
    expect(server.last.url.href).toBe('http://gateway.test/live/v1/events?watch=a&watch=b&watch=c&prefix.b=x%2F');
    expect(Object.fromEntries(server.last.headers)).toEqual({ accept: 'text/event-stream', 'x-team': 'tide' });
  });

  test('carries the newest id, of a quiet bookmark too', async () => {
    const store = await follow();
    server.last.send('event: bookmark\ndata: {"type":"bookmark","watch":"w","revision":"9"}\nid: w@e-9\n\n');
    await pass();
    server.last.cut();
    await pass(1_000);
    expect(server.exchanges).toHaveLength(2);
    expect(server.last.lastEventId).toBe('w@e-9');
    expect(store.position).toBe('w@e-9');
  });

  test('carries the id of a snapshot that was cut off', async () => {
    tide = watch(url, { watches: ['w'] });
    await pass();
    server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 3, 1, 'w@e-3/5') + upsert('w', 'b', 5, 1));
    await pass();
    server.last.cut();
    await pass(1_000);
    expect(server.last.lastEventId).toBe('w@e-3/5');
  });

  test('carries a token, asked for each time', async () => {
    const getToken = vi.fn(async () => `token-${getToken.mock.calls.length}`);
    await follow({ getToken });
    expect(server.last.headers.get('Authorization')).toBe('Bearer token-1');
    server.last.send(goodbye('token_expired', 10));
    server.last.end();
    await pass(1_000);
    expect(server.last.headers.get('Authorization')).toBe('Bearer token-2');
    expect(getToken.mock.calls).toEqual([[{ expired: false }], [{ expired: true }]]);
  });

  test('waits for its token, and tries again if there is none', async () => {
    const getToken = vi.fn<() => Promise<string>>().mockRejectedValueOnce(new Error('signed out')).mockResolvedValue('t');
    tide = watch(url, { watches: ['w'], getToken });
    await pass();
    expect(tide.store('w').view).toMatchObject({ state: 'connecting', reason: 'signed out' });
    expect(server.exchanges).toHaveLength(0);
    await pass(1_000);
    expect(server.exchanges).toHaveLength(1);
  });
});

describe('coming back', () => {
  test('backs off with jitter, up to half a minute', async () => {
    tide = watch(url, { watches: ['w'] });
    const waits = [];
    for (let i = 0; i < 8; i++) {
      await pass();
      const { length } = server.exchanges;
      const from = Date.now();
      server.last.fail();
      while (server.exchanges.length === length) await pass(100);
      waits.push(Date.now() - from);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
    expect(tide.store('w').state).toBe('connecting');
  });

  test('forgets its failures after a healthy minute', async () => {
    tide = watch(url, { watches: ['w'] });
    for (let i = 0; i < 6; i++) {
      await pass(30_000);
      server.last.fail();
    }
    await pass(30_000);
    server.last.accept(snapshot('w'));
    for (let s = 0; s < 61; s++) {
      await pass(1_000);
      server.last.send(':\n\n');
    }
    server.last.cut();
    const { length } = server.exchanges;
    await pass(499);
    expect(server.exchanges).toHaveLength(length);
    await pass(1);
    expect(server.exchanges).toHaveLength(length + 1);
  });

  test('obeys retry', async () => {
    await follow();
    server.last.send('retry: 7000\n\n');
    await pass();
    server.last.cut();
    await pass(6_999);
    expect(server.exchanges).toHaveLength(1);
    await pass(1);
    expect(server.exchanges).toHaveLength(2);
  });

  test('obeys goodbye, before anything else', async () => {
    const store = await follow();
    server.last.send(`retry: 7000\n\n${goodbye('draining', 4_210)}`);
    server.last.end();
    await pass();
    expect(store.view).toMatchObject({ state: 'offline', reason: 'the server said goodbye: draining' });
    window_('online');
    await pass(4_209);
    expect(server.exchanges).toHaveLength(1);
    await pass(1);
    expect(server.exchanges).toHaveLength(2);
  });

  test.each([[429, '20', 20_000], [503, '20', 20_000], [503, new Date(1_030_000).toUTCString(), 30_000]])(
    'after %i with Retry-After: %s', async (code, after, ms) => {
      tide = watch(url, { watches: ['w'] });
      await pass();
      server.last.refuse(code, { 'Retry-After': after });
      await pass();
      expect(tide.store('w').view).toMatchObject({ state: 'connecting', reason: `refused with ${code}` });
      window_('online');
      await pass(ms - 1);
      expect(server.exchanges).toHaveLength(1);
      await pass(1);
      expect(server.exchanges).toHaveLength(2);
    });

  test('an overloaded server is asked again when it said', async () => {
    tide = watch(url, { watches: ['w'] });
    await pass();
    server.last.accept(`retry: 1500\n\n: too many\n\n${goodbye('overloaded', 9_000)}`).end();
    await pass(8_999);
    expect(server.exchanges).toHaveLength(1);
    await pass(1);
    expect(server.exchanges).toHaveLength(2);
  });

  test('at once when the network is back, and no flood', async () => {
    await follow();
    server.last.cut();
    for (let i = 0; i < 5; i++) {
      await pass(15_000);
      server.last.fail();
    }
    const { length } = server.exchanges;
    await pass(100);
    for (let i = 0; i < 10; i++) window_('online');
    await pass(1_000);
    expect(server.exchanges).toHaveLength(length + 1);
    server.last.fail();
    for (let i = 0; i < 10; i++) {
      window_('online');
      await pass(50);
    }
    expect(server.exchanges).toHaveLength(length + 1);
  });

  test('offline since the last sign of life', async () => {
    const store = await follow();
    await pass(7_000);
    server.last.cut();
    await pass();
    expect(store.view).toMatchObject({ state: 'offline', since: 1_000_000, reason: 'terminated' });
    expect(store.resources.size).toBe(1);
    await pass(1_000);
    server.last.accept(hello(['w'], 'resume'));
    await pass();
    expect(store.view).toMatchObject({ state: 'stale', since: 1_000_000, reason: 'catching up' });
    server.last.send(endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect(store.state).toBe('in_sync');
  });
});

describe('the watchdog', () => {
  test('cuts off a stream that is silent for two heartbeats', async () => {
    const store = await follow();
    const first = server.last;
    await pass(29_999);
    expect(first.signal.aborted).toBe(false);
    await pass(1);
    expect(first.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'offline', since: 1_000_000, reason: 'nothing came for 30 s' });
  });

  test('takes a comment for life', async () => {
    const store = await follow();
    for (let i = 0; i < 20; i++) {
      await pass(15_000);
      server.last.send(': heartbeat\n\n');
    }
    await pass();
    expect(server.exchanges).toHaveLength(1);
    expect(store.state).toBe('in_sync');
  });

  test('keeps the heartbeat that hello names', async () => {
    tide = watch(url, { watches: ['w'] });
    await pass();
    server.last.accept(hello(['w'], 'snapshot', 1_000));
    await pass(2_000);
    expect(server.last.signal.aborted).toBe(true);
  });

  test('gives up on a server that does not answer', async () => {
    tide = watch(url, { watches: ['w'] });
    await pass(30_000);
    expect(server.last.signal.aborted).toBe(true);
  });
});

describe('a refusal', () => {
  test.each([400, 401, 403, 404, 406, 414])('%i is the end', async (code) => {
    tide = watch(url, { watches: ['w'] });
    await pass();
    server.last.refuse(code);
    await pass(600_000);
    expect(server.exchanges).toHaveLength(1);
    const { state, error, reason } = tide.store('w').view;
    expect([state, reason]).toEqual(['closed', `refused with ${code}`]);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ status: code, problem: { detail: `refused with ${code}` } });
  });

  test.each([408, 500, 502, 504])('%i is not', async (code) => {
    tide = watch(url, { watches: ['w'] });
    await pass();
    server.last.refuse(code);
    await pass(1_000);
    expect(server.exchanges).toHaveLength(2);
  });

  test('of one watch leaves the others', async () => {
    tide = watch(url, { watches: ['w', 'gone'] });
    const gone = tide.store('gone');
    await pass();
    server.last.refuse(404, {}, { status: 404, title: 'Not Found', detail: 'there is no watch "gone"', watch: 'gone' });
    await pass();
    expect(gone.view).toMatchObject({ state: 'closed', reason: 'there is no watch "gone"' });
    expect(server.last.watches).toEqual(['w']);
    expect(() => tide.store('gone')).toThrow('the watch gone is not followed');
  });

  test('of one that was added disturbs nobody', async () => {
    const store = await follow();
    const states: string[] = [];
    store.subscribe(({ state }) => states.push(state));
    tide.add('gone');
    await pass(50);
    server.last.refuse(404, {}, { status: 404, title: 'Not Found', detail: 'there is no watch "gone"', watch: 'gone' });
    await pass();
    server.last.accept(hello(['w'], 'resume'));
    await pass();
    server.last.send(endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect([server.exchanges.length, states]).toEqual([3, ['in_sync']]);
  });

  test('a page in place of a stream is said to be one', async () => {
    tide = watch(url, { watches: ['w'] });
    await pass();
    server.last.answer(new Response('<!doctype html>', { headers: { 'Content-Type': 'text/html' } }));
    await pass();
    expect(tide.store('w').view.error).toBeInstanceOf(NotAStreamError);
    expect(tide.store('w').view.reason).toContain('text/html');
  });

  test('an event that is no JSON is a lost connection', async () => {
    const store = await follow();
    server.last.send('data: {"type":\n\n');
    await pass();
    expect(store.state).toBe('offline');
    await pass(1_000);
    expect(server.exchanges).toHaveLength(2);
  });
});

describe('the set of watches', () => {
  test('grows in one new request, with the positions known', async () => {
    const store = await follow();
    const states: string[] = [];
    store.subscribe(({ state }) => states.push(state));
    const first = server.last;
    const v = tide.add('v');
    tide.add({ watch: 'u', prefix: 'p' });
    await pass(50);
    expect(first.signal.aborted).toBe(true);
    expect(server.exchanges).toHaveLength(2);
    expect(server.last.url.search).toBe('?watch=w&watch=v&watch=u&prefix.u=p');
    expect(server.last.lastEventId).toBe('w@e-5');
    server.last.accept(hello(['w', 'v', 'u'], 'resume') + endOfSnapshot('w', 5, 1, undefined, true)
      + reset('v', 'w@e-5,v@f-0/1') + endOfSnapshot('v', 1, 0, 'w@e-5,v@f-1'));
    await pass();
    expect(v.state).toBe('in_sync');
    expect(states).toEqual(['in_sync']);
  });

  test('shrinks in a new request; without any there is none', async () => {
    const store = await follow();
    tide.add('v');
    tide.remove('w');
    await pass(50);
    expect(server.last.watches).toEqual(['v']);
    expect(store.state).toBe('closed');
    tide.remove('v');
    await pass(50);
    expect(server.last.signal.aborted).toBe(true);
    await pass(600_000);
    expect(server.exchanges).toHaveLength(2);
  });

  test('a watch that is removed and added again does not travel again', async () => {
    const store = await follow();
    tide.remove('w');
    await pass(50);
    expect(tide.add('w')).toBe(store);
    await pass();
    expect(server.last.lastEventId).toBe('w@e-5');
    expect(store.view).toMatchObject({ state: 'offline' });
    server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect(store.view).toMatchObject({ state: 'in_sync' });
    expect(store.resources.size).toBe(1);
  });

  test('added and removed at once changes nothing that matters', async () => {
    await follow();
    tide.add('v');
    tide.remove('v');
    await pass(50);
    expect(server.last.watches).toEqual(['w']);
  });
});

describe('a page', () => {
  test('that was asleep checks its stream as soon as it is shown', async () => {
    await follow();
    vi.setSystemTime(Date.now() + 3_600_000); // timers stood still
    visibility(true);
    visibility(false);
    await pass();
    expect(server.exchanges[0]?.signal.aborted).toBe(true);
    await pass(1_000);
    expect(server.exchanges).toHaveLength(2);
  });

  test('that is hidden for long gives up its stream, and goes on by its position', async () => {
    const store = await follow({ hiddenMs: 10_000 });
    visibility(true);
    await pass(10_000);
    expect(server.last.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'offline', reason: 'this tab was hidden for long' });
    window_('online');
    await pass(600_000);
    expect(server.exchanges).toHaveLength(1);
    visibility(false);
    await pass();
    expect(server.exchanges).toHaveLength(2);
    expect(server.last.lastEventId).toBe('w@e-5');
  });

  test('that is hidden for a moment keeps it', async () => {
    await follow({ hiddenMs: 10_000 });
    visibility(true);
    await pass(9_000);
    visibility(false);
    await pass(9_000);
    expect(server.last.signal.aborted).toBe(false);
  });
});

describe('closing', () => {
  test('ends the stream, and leaves what it held', async () => {
    const store = await follow();
    tide.close();
    await pass();
    expect(server.last.signal.aborted).toBe(true);
    expect(store.view).toMatchObject({ state: 'closed', reason: '' });
    expect(store.view.error).toBeUndefined();
    expect(store.resources.size).toBe(1);
  });

  test('during a pause', async () => {
    await follow();
    server.last.cut();
    await pass();
    tide.close();
    await pass(60_000);
    expect(server.exchanges).toHaveLength(1);
  });

  test('while a token is asked for', async () => {
    let give = (_: string) => {};
    tide = watch(url, { watches: ['w'], getToken: () => new Promise((resolve) => { give = resolve; }) });
    await pass();
    tide.close();
    give('late');
    await pass();
    expect(server.exchanges).toHaveLength(0);
  });
});

test('priming says what the server says', async () => {
  tide = watch(url, { watches: ['w'] });
  await pass();
  server.last.accept(hello(['w']) + status('w', 'priming', 'no snapshot yet'));
  await pass();
  expect(tide.store('w').view).toMatchObject({ state: 'priming', reason: 'no snapshot yet', since: 1_000_000 });
});

// Node has neither a window nor a document, so that a test brings its own.
const page = new EventTarget();
let hidden = false;

beforeEach(() => {
  hidden = false;
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
  vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page));
  vi.stubGlobal('document', {
    get hidden() { return hidden; },
    addEventListener: page.addEventListener.bind(page),
    removeEventListener: page.removeEventListener.bind(page),
  });
});

function window_(type: string) {
  page.dispatchEvent(new globalThis.Event(type));
}

function visibility(now: boolean) {
  hidden = now;
  window_('visibilitychange');
}
