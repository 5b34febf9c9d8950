import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import { dialect } from '../src/port.js';
import { Hub, type Port, sharedTransport } from '../src/shared.js';
import type { Store } from '../src/store.js';
import { Stores } from '../src/stores.js';
import { watch } from '../src/watch.js';
import { answering, resumed, State } from './digests.js';
import { bookmark, endOfSnapshot, hello, pass, remove, reset, snapshot, status, upsert } from './server.js';
import { open, primed, resume, server, sharing, shown, tides, told, url } from './sharing.js';

sharing();

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

test('what holds the connection verifies for all tabs', async () => {
  const state = new State({ a: '1', b: '[2]' });
  open();
  open();
  await pass();
  server.last.accept(hello(['w']) + state.snapshot('w', 5));
  await pass();
  expect(tides.map((tide) => tide.store('w').view.verifiedAt)).toEqual([Date.now(), Date.now()]);
  server.last.cut();
  await pass(1_000);
  const after = state.with({ b: '3' });
  server.last.accept(resumed('w') + after.verify('w', 7, 'w@f-7'));
  await pass();
  const asked = await answering(server, after);
  expect(asked).toHaveLength(3);
  expect(tides.map((tide) => shown(tide))).toEqual(Array(2).fill('in_sync a=1,b=3'));
  expect(tides.map((tide) => tide.store('w').view.verifiedAt! > 1_001_000)).toEqual([true, true]);
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
    server.last.refuse(414); // the two together
    await pass(100);
    const [again, alone] = server.exchanges.slice(asked + 1).sort((a, b) => b.watches[0]!.localeCompare(a.watches[0]!));
    again!.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    alone!.refuse(414);
    await pass(1_000);
    expect(refused.view).toMatchObject({ state: 'closed', error: { status: 414 } });
    expect([shown(tide), shown(long)]).toEqual(['in_sync a=1', 'in_sync a=1']);
    long.close();
    tide.remove('w');
    await pass(100);
    expect(server.exchanges).toHaveLength(asked + 3);
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
    expect([...resources]).toEqual([...tide.store('w').resources]); // no snapshot has replaced the map
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
    expect([shown(tide), shown(tides[1]!)]).toEqual(['offline a=1', 'in_sync a=2']);
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
  server.last.accept(
    hello(['w', 'v']) +
      reset('w', 'w@e-0/5') +
      endOfSnapshot('w', 5, 0) +
      reset('v', 'w@e-0/5,v@e-0/5') +
      endOfSnapshot('v', 5, 0, 'w@e-5,v@e-5'),
  );
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

test('a tab requests its stream once there is a hub, and only once', async () => {
  const asked: string[] = [];
  const port = Object.assign(new EventTarget(), {
    postMessage: ({ query, say }: { query?: string; say?: string }) => asked.push(query ?? say!),
  });
  const tide = watch(url, { watches: ['w'], transport: sharedTransport(port as unknown as Port) });
  tides.push(tide);
  await pass(8_000);
  expect(asked).toEqual([]);
  port.dispatchEvent(new MessageEvent('message', { data: { hub: 'h', dialect } }));
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
  expect(posted.filter((line) => line.includes('"upsert"'))).toEqual([
    '{"type":"upsert","watch":"w","key":"a","revision":"999","value":999}',
  ]);
  end();
  await pass(100);
});
