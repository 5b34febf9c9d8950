import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Hub, serveTabs, sharedTransport, watchShared, type Port, type SharedOptions } from '../src/shared.js';
import { SharedWatch } from '../src/shared_watch.js';
import type { Store } from '../src/store.js';
import type { WatchSpec } from '../src/spec.js';
import { Stores } from '../src/stores.js';
import { watch, type Watches } from '../src/watch.js';
import { Browser, type Tab } from './browser.js';
import { bookmark, endOfSnapshot, hello, pass, remove, reset, Server, snapshot, status, upsert } from './server.js';

const url = 'http://gateway.test';

let server: Server;
let browser: Browser;
let tides: Watches[];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  vi.spyOn(Math, 'random').mockImplementation(halves());
  server = new Server();
  browser = new Browser();
  vi.stubGlobal('SharedWorker', browser.worker(() => serveTabs(url)));
  tides = [];
});

afterEach(async () => {
  for (const tide of tides) tide.close();
  await pass(200_000); // the hub finds that there are no tabs left
  browser.close();
  vi.restoreAllMocks();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

// Names must differ, and waits must be predictable.
function halves(): () => number {
  let n = 0;
  return () => 0.5 + ++n / 1e9;
}

function open(watches: SharedOptions['watches'] = ['w'], options: SharedOptions = {}, tab = browser.tab()): { tab: Tab; tide: Watches } {
  const worker = () => new SharedWorker('tide.worker.js');
  const tide = tab.run(() => watchShared(url, { watches, worker, ...options }));
  tides.push(tide);
  return { tab, tide };
}

const shown = (tide: Watches, spec: WatchSpec = 'w') => `${tide.store(spec).state} ${[...tide.store(spec).resources].map(([key, { value }]) => `${key}=${value}`)}`;

/** The changes that a store reports from now on. */
function told(tide: Watches, spec: WatchSpec = 'w'): string[] {
  const all: string[] = [];
  tide.store(spec).subscribe(({ state }, { replaced, keys }) => all.push(`${state}${replaced ? ' replaced' : ''} ${[...keys]}`));
  all.length = 0;
  return all;
}

async function primed(options: SharedOptions = {}) {
  const first = open(['w'], options);
  await pass();
  server.last.accept(snapshot('w'));
  await pass();
  return first;
}

/** Answers a request of the hub that resumes from w@e-5. */
async function resume(): Promise<void> {
  server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
  await pass();
}

test('eight tabs share one connection', async () => {
  await primed();
  for (let i = 0; i < 7; i++) open();
  await pass();
  expect(tides.map((tide) => shown(tide))).toEqual(Array(8).fill('in_sync a=1'));
  server.last.send(upsert('w', 'a', 6, 2) + upsert('w', 'b', 6, 2, 'w@e-6') + remove('w', 'a', 7, 'w@e-7'));
  await pass();
  expect(tides.map((tide) => shown(tide))).toEqual(Array(8).fill('in_sync b=2'));
  expect(server.exchanges).toHaveLength(1);
});

describe('a tab', () => {
  test('receives whole transactions', async () => {
    const { tide } = await primed();
    const changes = told(tide);
    server.last.send(upsert('w', 'a', 6, 2) + upsert('w', 'b', 6, 2, 'w@e-6'));
    await pass();
    expect(changes).toEqual(['in_sync a,b']);
  });

  test('receives the text of the gateway, for a parse that keeps every digit', async () => {
    const big = (json: string) => JSON.parse(json.replace(/:(\d{17,})/g, ':"$1"'));
    const { tide } = open(['w'], { parse: big });
    await pass();
    server.last.accept(snapshot('w', 0).replace('"value":0', '"value":12345678901234567890'));
    await pass();
    expect(shown(tide)).toBe('in_sync a=12345678901234567890');
  });

  test('receives the revision of a bookmark without changes', async () => {
    const { tide } = await primed();
    server.last.send(bookmark('w', 9, 'w@e-9'));
    await pass();
    expect(tide.store('w').view.revision).toBe('9');
  });

  test('receives the stale state with its start and reason', async () => {
    const { tide } = await primed();
    await pass(1_000);
    server.last.send(status('w', 'stale', 'the upstream is lost'));
    await pass();
    expect(tide.store('w').view).toMatchObject({ state: 'stale', since: 1_001_000, reason: 'the upstream is lost' });
    await pass(1_000);
    expect(open().tide.store('w').view).toMatchObject({ state: 'connecting' });
    await pass();
    expect(tides[1]!.store('w').view).toMatchObject({ state: 'stale', since: 1_001_000, reason: 'the upstream is lost' });
    server.last.send(status('w', 'in_sync', undefined, 'w@e-5'));
    await pass();
    expect(tides.map((one) => one.store('w').state)).toEqual(['in_sync', 'in_sync']);
  });

  test('is told that the gateway cannot be reached', async () => {
    const { tide } = open();
    await pass();
    server.last.refuse(503);
    await pass();
    expect(tide.store('w').view).toMatchObject({ state: 'connecting', reason: 'refused with 503' });
    await pass(1_000);
    server.last.accept(hello(['w']));
    await pass();
    expect(tide.store('w').state).toBe('priming');
    server.last.send(reset('w', 'w@e-0/5') + endOfSnapshot('w', 5, 0, 'w@e-5'));
    await pass();
    server.last.cut();
    await pass();
    expect(tide.store('w').view).toMatchObject({ state: 'offline', reason: 'terminated' });
  });

  test('is told of a refusal; the next tab may try again', async () => {
    const { tide } = open(['w', 'v']);
    await pass();
    server.last.refuse(401);
    await pass();
    expect(tide.store('w').view.error).toMatchObject({ name: 'RefusedError', status: 401 });
    open();
    await pass();
    expect(server.exchanges).toHaveLength(2);
  });

  test('is told that there is no room for a watch; the others go on', async () => {
    const { tide } = await primed();
    const asked = server.exchanges.length;
    const long = open(['w', 'long']).tide;
    const refused = long.store('long');
    await pass(100);
    server.last.refuse(414);
    await pass();
    await resume();
    await pass(1_000);
    expect(refused.view).toMatchObject({ state: 'closed', error: { status: 414 } });
    expect([shown(tide), shown(long)]).toEqual(['in_sync a=1', 'in_sync a=1']);
    long.close();
    tide.remove('w');
    await pass(100);
    expect(server.exchanges).toHaveLength(asked + 2);
  });

  test.each([401, 404])('is told that one watch is refused with %i', async (status) => {
    const { tide } = await primed();
    const gone = tide.add('gone');
    await pass(100);
    server.last.refuse(status, {}, { status, title: 'Refused', detail: 'there is no watch "gone"', watch: 'gone' });
    await pass();
    await resume();
    await pass(1_000);
    expect(gone.view).toMatchObject({ state: 'closed', error: { status } });
    expect(shown(tide)).toBe('in_sync a=1');
    expect(server.exchanges).toHaveLength(3);
  });

  test('receives a large snapshot in pieces, as one change', async () => {
    const { tide } = open();
    const changes = told(tide);
    await pass();
    const large = 'x'.repeat(300_000);
    const rows = ['a', 'b', 'c', 'd', 'e'].map((key) => upsert('w', key, 5, large));
    server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + rows.join('') + endOfSnapshot('w', 5, 5, 'w@e-5'));
    const posted = vi.spyOn(EventTarget.prototype, 'dispatchEvent');
    await pass();
    const lengths = posted.mock.calls.map(([event]) => (event as MessageEvent).data?.events?.join('').length).filter(Boolean);
    expect(lengths.length).toBeGreaterThan(2);
    expect(Math.max(...lengths)).toBeLessThan(1_000_000);
    expect(changes.filter((one) => one.includes('replaced'))).toEqual(['in_sync replaced ']);
    expect(tide.store('w').resources.size).toBe(5);
  });
});

describe('prefixes', () => {
  const rows = (...keys: string[]) => keys.map((key) => upsert('w', key, 5, 1)).join('');

  test('of one watch may differ from tab to tab', async () => {
    const inX = { watch: 'w', prefix: 'home/x/' };
    const inY = { watch: 'w', prefix: 'home/y/' };
    const { tide: x } = open([inX]);
    await pass();
    expect(server.last.url.searchParams.get('prefix.w')).toBe('home/x/');
    server.last.accept(hello(['w']) + reset('w', 'w@x-0/5') + rows('home/x/1') + endOfSnapshot('w', 5, 1, 'w@x-5'));
    await pass();
    const { tide: y } = open([inY]);
    await pass(50);
    expect(server.last.url.searchParams.get('prefix.w')).toBe('home/');
    expect(shown(x, inX)).toBe('stale home/x/1=1');
    server.last.accept(hello(['w']) + reset('w', 'w@h-0/5') + rows('home/x/1', 'home/y/1', 'home/z') + endOfSnapshot('w', 5, 3, 'w@h-5'));
    await pass();
    expect([shown(x, inX), shown(y, inY)]).toEqual(['in_sync home/x/1=1', 'in_sync home/y/1=1']);
    const changes = told(x, inX);
    server.last.send(upsert('w', 'home/y/1', 6, 2) + remove('w', 'home/z', 6, 'w@h-6'));
    await pass();
    expect([shown(x, inX), shown(y, inY)]).toEqual(['in_sync home/x/1=1', 'in_sync home/y/1=2']);
    expect(changes).toEqual(['in_sync ']); // another revision
    const { tide: z } = open([{ watch: 'w', prefix: 'home/x/1' }]);
    await pass(100);
    expect(shown(z, { watch: 'w', prefix: 'home/x/1' })).toBe('in_sync home/x/1=1');
    expect(server.exchanges).toHaveLength(2);
  });

  test('are compared by bytes', async () => {
    open(['w']);
    await pass();
    const bytes = (text: string) => upsert('w', btoa(text), 5, 1).replace('"revision"', '"key_encoding":"base64","revision"');
    server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + bytes('\xc3\xbc\xff') + bytes('z\xff') + endOfSnapshot('w', 5, 2, 'w@e-5'));
    await pass();
    const { tide } = open([{ watch: 'w', prefix: 'ü' }]);
    await pass();
    expect([...tide.store({ watch: 'w', prefix: 'ü' }).resources.values()].map(({ key }) => atob(key))).toEqual(['\xc3\xbc\xff']);
  });

  test('that share only half a character have nothing in common', async () => {
    open([{ watch: 'w', prefix: '🌊' }]);
    open([{ watch: 'w', prefix: '🌍' }]);
    await pass(100);
    expect(server.last.url.searchParams.get('prefix.w')).toBeNull();
  });
});

describe('definitions', () => {
  const high = { watch: 'w', filter: 'value > 1' };
  const low = { watch: 'w', filter: 'value < 2' };
  const requests = () => server.exchanges.filter(({ open }) => open).map(({ url }) => url.searchParams.get('filter.w'));

  /** Answers the last request with a snapshot in an epoch of its own. */
  async function answer(epoch: string, key: string, value: number): Promise<void> {
    server.last.accept(hello(['w']) + reset('w', `w@${epoch}-0/5`) + upsert('w', key, 5, value) + endOfSnapshot('w', 5, 1, `w@${epoch}-5`));
    await pass();
  }

  test('of one watch have a connection each, which tabs with the same definition share', async () => {
    const { tide } = open([high]);
    await pass();
    await answer('h', 'a', 2);
    const { tide: other } = open([low]);
    await pass(100);
    await answer('l', 'b', 1);
    expect(requests()).toEqual(['value > 1', 'value < 2']);
    expect([shown(tide, high), shown(other, low)]).toEqual(['in_sync a=2', 'in_sync b=1']);
    const { tide: both } = open([low, { ...high }]);
    await pass(100);
    expect([shown(both, high), shown(both, low)]).toEqual(['in_sync a=2', 'in_sync b=1']);
    server.exchanges[0]!.send(upsert('w', 'c', 6, 3, 'w@h-6'));
    await pass();
    expect([shown(tide, high), shown(both, high), shown(both, low)]).toEqual(['in_sync a=2,c=3', 'in_sync a=2,c=3', 'in_sync b=1']);
    expect(server.exchanges).toHaveLength(2);
  });

  test('with the same filter share the common prefix', async () => {
    const { tide } = open([{ ...high, prefix: 'home/x/' }]);
    const { tide: other } = open([{ ...high, prefix: 'home/y/' }]);
    await pass(100);
    expect(server.last.url.searchParams.get('prefix.w')).toBe('home/');
    expect(server.last.url.searchParams.get('filter.w')).toBe('value > 1');
    await answer('h', 'home/x/1', 2);
    expect([shown(tide, { ...high, prefix: 'home/x/' }), shown(other, { ...high, prefix: 'home/y/' })]).toEqual(['in_sync home/x/1=2', 'in_sync ']);
    expect(requests()).toHaveLength(1);
  });

  test('that the gateway refuses are refused alone, with its text', async () => {
    const { tide } = await primed();
    const { tide: wrong } = open([{ watch: 'v', filter: 'value = 1' }, 'w']);
    const refused = wrong.store({ watch: 'v', filter: 'value = 1' });
    await pass(100);
    const detail = 'filter, column 7: = is no operator: did you mean ==?';
    server.last.refuse(400, {}, { status: 400, title: 'Bad Request', detail, watch: 'v', parameter: 'filter.v' });
    await pass();
    await resume();
    await pass(1_000);
    expect(refused.view).toMatchObject({ state: 'closed', reason: detail, error: { status: 400, problem: { detail } } });
    expect([shown(tide), shown(wrong)]).toEqual(['in_sync a=1', 'in_sync a=1']);
    const right = wrong.add({ watch: 'v', filter: 'value == 1' });
    await pass(100);
    server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true) + reset('v', 'w@e-5,v@e-0/1') + endOfSnapshot('v', 1, 0, 'w@e-5,v@e-1'));
    await pass(100);
    expect(right.state).toBe('in_sync');
  });

  test('of a tab that changes its mind begin with a snapshot', async () => {
    const { tide } = open([high]);
    await pass();
    await answer('h', 'a', 2);
    const store = tide.store(high);
    tide.remove(high);
    tide.add(low);
    await pass(100);
    expect(server.last.lastEventId).toBe('w@h-5'); // the gateway answers it with a reset
    await answer('l', 'b', 1);
    expect([shown(tide, low), store.state]).toEqual(['in_sync b=1', 'closed']);
    expect(() => tide.store(high)).toThrow('the watch w is not followed');
  });
});

describe('a tab that is hidden for too long', () => {
  async function hidden() {
    const { tab, tide } = await primed({ hiddenMs: 60_000 });
    tab.hide();
    for (let s = 0; s < 130; s += 10) await alive();
    expect(tide.store('w').view).toMatchObject({ state: 'offline', reason: 'this tab was hidden for too long' });
    return { tab, tide };
  }

  async function alive() {
    await pass(10_000);
    if (!server.last.signal.aborted) server.last.send(':\n\n');
  }

  test('resumes with what changed since', async () => {
    open();
    const { tab, tide } = await hidden();
    expect(server.last.signal.aborted).toBe(false);
    const changes = told(tide);
    const { resources } = tide.store('w');
    server.last.send(upsert('w', 'b', 6, 1, 'w@e-6') + upsert('w', 'c', 7, 1, 'w@e-7') + remove('w', 'b', 8, 'w@e-8'));
    await alive();
    tab.show();
    await pass();
    expect(changes).toEqual(['in_sync b,c']);
    expect(shown(tide)).toBe('in_sync a=1,c=1');
    expect(tide.store('w').resources).toBe(resources);
  });

  test('receives everything after a snapshot of the hub', async () => {
    open();
    const { tab, tide } = await hidden();
    const changes = told(tide);
    server.last.send(reset('w', 'w@f-0/9', 'epoch_changed') + upsert('w', 'z', 9, 1) + endOfSnapshot('w', 9, 1, 'w@f-9'));
    await alive();
    tab.show();
    await pass();
    expect(changes).toEqual(['in_sync replaced ']);
    expect(shown(tide)).toBe('in_sync z=1');
  });

  test('receives everything after too many changes', async () => {
    open();
    const { tab, tide } = await hidden();
    server.last.send(Array.from({ length: 10_001 }, (_, i) => upsert('w', `k${i}`, 6 + i, 1, `w@e-${6 + i}`)).join(''));
    await pass();
    const changes = told(tide);
    tab.show();
    await pass();
    expect(changes.at(-1)).toBe('in_sync replaced ');
    expect(tide.store('w').resources.size).toBe(10_002);
  });

  test('closes the connection if it is the last, and later resumes from its position', async () => {
    const { tab, tide } = await hidden();
    expect(server.last.signal.aborted).toBe(true);
    await pass(600_000);
    expect(server.exchanges).toHaveLength(1);
    const changes = told(tide);
    tab.show();
    await pass();
    expect(server.last.lastEventId).toBe('w@e-5');
    server.last.accept(hello(['w'], 'resume') + upsert('w', 'b', 6, 2) + endOfSnapshot('w', 6, 2, 'w@e-6', true));
    await pass();
    expect(shown(tide)).toBe('in_sync a=1,b=2');
    expect(changes.join()).not.toContain('replaced');
  });

  test('is not dropped because its timers are late', async () => {
    const { tab, tide } = await primed({ hiddenMs: Infinity });
    tab.hide();
    const changes = told(tide);
    for (let s = 0; s < 900; s += 10) await alive();
    expect(changes).toEqual([]);
    expect(server.exchanges).toHaveLength(1);
  });
});

describe('a tab that is gone', () => {
  test('does not end the streams of others', async () => {
    const { tide } = await primed();
    open();
    await pass();
    tide.close();
    await pass(1_000);
    expect(server.last.signal.aborted).toBe(false);
    tides[1]!.close();
    await pass(1_000);
    expect(server.last.signal.aborted).toBe(true);
  });

  test('is noticed, even without a notice', async () => {
    const { tab } = await primed();
    tab.kill();
    for (let s = 0; s < 200; s += 10) {
      await pass(10_000);
      if (!server.last.signal.aborted) server.last.send(':\n\n');
    }
    expect(server.last.signal.aborted).toBe(true);
    expect(server.exchanges).toHaveLength(1);
  });

  test('reconnects if it was only frozen', async () => {
    const { tab, tide } = await primed();
    open();
    await pass();
    tab.freeze();
    for (let s = 0; s < 300; s += 10) {
      await pass(10_000);
      server.last.send(':\n\n');
    }
    server.last.send(upsert('w', 'a', 6, 2, 'w@e-6'));
    await pass();
    expect([shown(tide), shown(tides[1]!)]).toEqual(['in_sync a=1', 'in_sync a=2']);
    tab.thaw();
    await pass(1_000);
    expect(shown(tide)).toBe('in_sync a=2');
    expect(server.exchanges).toHaveLength(1);
  });
});

test('a watch without subscriptions is freed while others go on', async () => {
  const stores: Array<WeakRef<Store>> = [];
  const { add } = Stores.prototype;
  vi.spyOn(Stores.prototype, 'add').mockImplementation(function (this: Stores, ...args) {
    const store = add.apply(this, args);
    if (args[0].watch === 'v' && !stores.some((one) => one.deref() === store)) stores.push(new WeakRef(store));
    return store;
  });
  const { tide } = open(['w', 'v']);
  await pass();
  server.last.accept(hello(['w', 'v']) + reset('w', 'w@e-0/5') + endOfSnapshot('w', 5, 0) + reset('v', 'w@e-0/5,v@e-0/5') + endOfSnapshot('v', 5, 0, 'w@e-5,v@e-5'));
  await pass();
  tide.remove('v');
  await pass(200);
  expect(server.last.watches).toEqual(['w']);
  server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 0, 'w@e-5', true));
  await pass();
  vi.mocked(Stores.prototype.add).mockClear();
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  gc();
  expect(stores).toHaveLength(2); // one in the tab, one in the hub
  expect(stores.map((one) => one.deref()?.watch)).toEqual([undefined, undefined]);
  expect(shown(tide)).toBe('in_sync ');
});

test('parts that no tab follows any more are forgotten if there are many', async () => {
  const known: Array<WeakRef<SharedWatch>> = [];
  const { subscribe } = SharedWatch.prototype;
  const spy = vi.spyOn(SharedWatch.prototype, 'subscribe').mockImplementation(function (this: SharedWatch, ...args) {
    if (!known.some((one) => one.deref() === this)) known.push(new WeakRef(this));
    return subscribe.apply(this, args);
  });
  const { tide } = open([]);
  const part = (i: number) => ({ watch: 'w', filter: `value > ${i}` });
  for (let i = 0; i < 80; i++) {
    tide.add(part(i));
    await pass(200);
    if (i < 79) tide.remove(part(i));
  }
  server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 5, 99) + endOfSnapshot('w', 5, 1, 'w@e-5'));
  await pass(200);
  expect(shown(tide, part(79))).toBe('in_sync a=99');
  spy.mockClear();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(known).toHaveLength(80);
  expect(known.filter((one) => one.deref()).length).toBeLessThanOrEqual(50);
});

test('a tab requests its stream once there is a hub, and only once', async () => {
  const asked: string[] = [];
  const port = Object.assign(new EventTarget(), { postMessage: ({ query, say }: { query?: string; say?: string }) => asked.push(query ?? say!) });
  const tide = watch(url, { watches: ['w'], transport: sharedTransport(port as unknown as Port) });
  tides.push(tide);
  await pass(8_000);
  expect(asked).toEqual([]);
  port.dispatchEvent(new MessageEvent('message', { data: { hub: 'h', dialect: 2 } }));
  expect(asked).toEqual(['watch=w']);
  await pass(8_000);
  expect(asked).toEqual(['watch=w', 'alive']);
  tide.close();
  expect(asked).toEqual(['watch=w', 'alive', 'end']);
});

test('a slow tab receives the newest values, and costs only their keys', async () => {
  const posted: string[] = [];
  const port = Object.assign(new EventTarget(), { postMessage: ({ events = [] }: { events?: string[] }) => posted.push(...events) });
  const ask = (data: object) => port.dispatchEvent(new MessageEvent('message', { data: { stream: 1, ...data } }));
  const end = new Hub(url).serve(port as unknown as Port);
  ask({ query: 'watch=w', lastEventId: '' });
  await pass();
  server.last.accept(snapshot('w'));
  await pass();
  for (let i = 6; i < 1_000; i++) {
    server.last.send(upsert('w', 'a', i, i, `w@e-${i}`));
    await pass();
  }
  posted.length = 0;
  ask({ say: 'more' }); // it has read hello and the snapshot
  ask({ say: 'more' });
  await pass();
  expect(posted.filter((line) => line.includes('"upsert"'))).toEqual(['{"type":"upsert","watch":"w","key":"a","revision":"999","value":999}']);
  end();
  await pass(100);
});
