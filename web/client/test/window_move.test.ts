import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { authenticated } from '../src/auth.js';
import { eventSourceTransport, type Watches, type WatchOptions, watch } from '../src/index.js';
import { logged } from '../src/log.js';
import { fetchTransport } from '../src/transport.js';
import { type LiveWindow, type WindowView, watchWindow } from '../src/window.js';
import { FakeEventSource } from './fake_event_source.js';
import { pass, Server } from './server.js';
import { type Fate, Gateway, type Row } from './window_gateway.js';

const order = { watch: 'w', order: 'n' } as const;

let server: Server;
let tide: Watches<{ w: Row }>;
let gateway: Gateway;
let live: LiveWindow<Row>;
let views: Array<WindowView<Row>>;

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  gateway = new Gateway(server);
});

afterEach(async () => {
  live.close();
  tide.close();
  await pass();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = async (ms = 50) => {
  await pass(ms);
  gateway.answer();
  await pass();
};
const streams = () => server.exchanges.filter(({ url }) => url.pathname.endsWith('/v1/events'));
const moves = () => gateway.moves.map(({ search }) => search);
const numbers = ({ view }: LiveWindow<Row>) => view.rows.map(({ value }) => value.n);

/** A window of ten rows, of which it has the first three. */
async function open(options: WatchOptions<'w'> = {}) {
  gateway.commit(Array.from({ length: 10 }, (_, n) => [`k${n}`, { n, v: 0 }]));
  tide = watch<{ w: Row }>('http://gateway.test/live/', options);
  live = watchWindow(tide, { ...order, limit: 3 });
  await settle();
  views = [];
  live.subscribe((view) => views.push(view));
  expect(numbers(live)).toEqual([0, 1, 2]);
}

/** It has moved, and has had as many rows all the time, and been in sync. */
function expectMoved(...rows: number[]) {
  expect(numbers(live)).toEqual(rows);
  expect(live.view).toMatchObject({ moving: false, before: rows[0], state: 'in_sync' });
  expect(views.every(({ rows: { length }, state }) => length === rows.length && state === 'in_sync')).toBe(true);
}

describe('a window that moves', () => {
  test('goes on with its stream, and keeps the objects of its rows', async () => {
    await open();
    const [, , third] = live.view.rows;
    live.move({ offset: 2 });
    expect(live.view).toMatchObject({ moving: true, before: 0 });
    await settle();
    expectMoved(2, 3, 4);
    expect(live.view.rows[0]).toBe(third);
    live.move({ after: live.view.next });
    await settle();
    expectMoved(5, 6, 7);
    live.move({ offset: 0, limit: 3 });
    await settle();
    expectMoved(0, 1, 2);
    expect(gateway.moves[0]!.pathname).toBe('/live/v1/streams/s0/window');
    expect(moves()).toEqual(['?watch=w&limit=3&offset=2', '?watch=w&limit=3&after=k4', '?watch=w&limit=3']);
    expect(streams()).toHaveLength(1);
    gateway.commit([['k1', { n: 1, v: 1 }]]);
    await settle();
    expect(live.view.rows[1]).toMatchObject({ value: { v: 1 } });
  });

  test('asks for where it is wanted last, with one request at a time', async () => {
    await open();
    for (const offset of [1, 2, 3]) live.move({ offset });
    await pass();
    for (const offset of [4, 5, 6]) {
      live.move({ offset });
      await pass(10);
    }
    await settle();
    expect(live.view.moving).toBe(true);
    await settle();
    expectMoved(6, 7, 8);
    expect(moves()).toEqual(['?watch=w&limit=3&offset=3', '?watch=w&limit=3&offset=6']);
  });

  test('waits for the rows of a move before the next one', async () => {
    await open();
    gateway.fates.push('rows late');
    live.move({ offset: 2 });
    await settle();
    live.move({ offset: 4 });
    await pass(1_000);
    expect(moves()).toHaveLength(1);
    await settle();
    await settle();
    expectMoved(4, 5, 6);
    expect(moves()).toHaveLength(2);
  });

  test('back to where it is asks for nothing', async () => {
    await open();
    live.move({ offset: 2 });
    live.move({ offset: 0 });
    expect(live.view.moving).toBe(false);
    await settle();
    expectMoved(0, 1, 2);
    expect(moves()).toEqual([]);
  });

  test('has moved when the rows are there, before the answer', async () => {
    await open();
    gateway.fates.push('answer late');
    live.move({ offset: 2 });
    await settle();
    expectMoved(2, 3, 4);
    live.move({ offset: 4 });
    await settle();
    await settle();
    expectMoved(4, 5, 6);
    expect(streams()).toHaveLength(1);
  });

  test('without a connection is what the next stream asks for', async () => {
    await open();
    server.stream.cut();
    await pass();
    live.move({ offset: 2 });
    expect(live.view).toMatchObject({ moving: true, state: 'offline' });
    await pass(5_000);
    await settle();
    expect(streams()[1]!.url.search).toBe('?watch=w&order.w=n&limit.w=3&offset.w=2');
    expect(numbers(live)).toEqual([2, 3, 4]);
    expect(live.view).toMatchObject({ moving: false, state: 'in_sync' });
    expect(moves()).toEqual([]);
  });

  test('while the stream begins moves when it has begun', async () => {
    gateway.commit([0, 1, 2, 3].map((n) => [`k${n}`, { n, v: 0 }]));
    tide = watch<{ w: Row }>('http://gateway.test/live/');
    live = watchWindow(tide, { ...order, limit: 2 });
    await pass();
    live.move({ offset: 1 });
    await settle();
    expect(live.view.moving).toBe(true);
    await settle();
    expect(numbers(live)).toEqual([1, 2]);
    expect([streams().length, moves().length]).toEqual([1, 1]);
  });

  test.each<Fate>(['rows late', 'answer late', 'answer lost'])('and loses its stream, %s, has moved with the next one', async (fate) => {
    await open();
    gateway.fates.push(fate);
    live.move({ offset: 2 });
    await settle(0);
    server.stream.cut();
    await pass(5_000);
    await settle();
    expect(streams()).toHaveLength(2);
    expect(streams()[1]!.url.searchParams.get('offset.w')).toBe('2');
    expect(numbers(live)).toEqual([2, 3, 4]);
    expect(live.view).toMatchObject({ moving: false, state: 'in_sync' });
  });

  test('has moved when the rows are there, although the answer is lost', async () => {
    await open();
    gateway.fates.push('answer lost');
    live.move({ offset: 2 });
    for (let i = 0; i < 3; i++) await settle();
    expectMoved(2, 3, 4);
    live.move({ offset: 4 });
    await settle();
    expectMoved(4, 5, 6);
    expect([streams().length, moves().length]).toEqual([1, 2]);
  });

  test.each<Fate>(['lost', 401, 403, 404])('takes another stream, since the request is %s', async (fate) => {
    await open();
    gateway.fates.push(fate);
    live.move({ offset: 2 });
    for (let i = 0; i < 4; i++) await settle();
    expectMoved(2, 3, 4);
    expect(streams().filter(({ open }) => open)).toHaveLength(1);
    expect(streams()[1]!.url.searchParams.get('offset.w')).toBe('2');
    live.move({ offset: 4 });
    await settle();
    expectMoved(4, 5, 6);
    expect([streams().length, moves().length]).toEqual([2, 2]); // it moves on that stream
  });

  test('takes another stream if there is no answer for 10 s', async () => {
    await open();
    live.move({ offset: 2 });
    await pass(9_900);
    expect(streams()).toHaveLength(1);
    await pass(200);
    expect(server.exchanges[1]!.signal.aborted).toBe(true);
    expect(streams()).toHaveLength(2);
    await settle();
    expectMoved(2, 3, 4);
  });

  test('takes another stream of a gateway that does not name its streams', async () => {
    gateway = new Gateway(server, false);
    await open();
    live.move({ offset: 2 });
    await settle();
    expectMoved(2, 3, 4);
    expect([streams().length, moves().length]).toEqual([2, 0]);
  });

  test('asks no more for a minute after three failures', async () => {
    await open();
    gateway.fates.push(404, 404, 404);
    for (const offset of [1, 2, 3, 4, 5]) {
      live.move({ offset });
      await settle();
      await settle();
      expectMoved(offset, offset + 1, offset + 2);
    }
    expect([streams().length, moves().length]).toEqual([6, 3]);
    for (let i = 0; i < 6; i++) await settle(10_000);
    live.move({ offset: 6 });
    await settle();
    expectMoved(6, 7, 8);
    expect([streams().length, moves().length]).toEqual([6, 4]);
  });

  test('waits if the gateway asks for that, and goes where it is wanted then', async () => {
    await open();
    gateway.fates.push(429);
    live.move({ offset: 2 });
    await settle();
    live.move({ offset: 4 });
    await pass(1_900);
    await settle();
    expect(moves()).toHaveLength(1);
    await pass(200);
    await settle();
    expectMoved(4, 5, 6);
    expect([streams().length, moves().length]).toEqual([1, 2]);
  });

  test('waits longer and longer if the gateway has no room', async () => {
    await open();
    gateway.fates.push(503, 503, 503);
    live.move({ offset: 2 });
    const at: number[] = [];
    for (let i = 0; i < 100; i++) {
      const before = moves().length;
      await settle(100);
      if (moves().length > before) at.push(i / 10);
    }
    expect(at.map((one) => Math.round(one - at[0]!))).toEqual([0, 1, 3, 7]);
    expectMoved(2, 3, 4);
  });

  test('shows a refusal of the window', async () => {
    await open();
    gateway.fates.push(400);
    live.move({ limit: 500 });
    await settle();
    server.stream.refuse(400, {}, { status: 400, title: 'Bad Request', detail: 'limit is 500: want 1 to 100', watch: 'w' });
    await pass();
    expect(live.view).toMatchObject({ state: 'closed', moving: false });
    expect(live.view.error?.message).toContain('limit is 500');
  });

  test('leaves a store alone that the page or another window uses', async () => {
    await open();
    const other = watchWindow(tide, { ...order, limit: 3 });
    live.move({ offset: 2 });
    await settle();
    expect(numbers(live)).toEqual([2, 3, 4]);
    expect(numbers(other)).toEqual([0, 1, 2]);
    const store = tide.add({ ...order, limit: 3, offset: 2 });
    live.move({ offset: 4 });
    await settle();
    await settle();
    expect(numbers(live)).toEqual([4, 5, 6]);
    expect([...store.resources.keys()]).toEqual(['k2', 'k3', 'k4']);
    expect(moves()).toEqual([]);
    other.close();
  });

  test('goes over to a store that has the window already', async () => {
    await open();
    const other = watchWindow(tide, { ...order, limit: 3, offset: 2 });
    await settle();
    live.move({ offset: 2 });
    expect(live.view).toMatchObject({ moving: false, before: 2 });
    other.close();
    await settle();
    expectMoved(2, 3, 4);
    expect(moves()).toEqual([]);
  });

  test.each([0, 2])('is no store of its definition on the way, which the page adds at %i', async (offset) => {
    await open();
    gateway.fates.push('rows late');
    live.move({ offset: 2 });
    await pass();
    const store = tide.add({ ...order, limit: 3, offset });
    const shown: string[] = [];
    store.subscribe(({ resources, state }) => state === 'in_sync' && shown.push([...resources.keys()].join()));
    for (let i = 0; i < 3; i++) await settle();
    expectMoved(2, 3, 4);
    expect(new Set(shown)).toEqual(new Set([offset ? 'k2,k3,k4' : 'k0,k1,k2']));
    live.move({ offset: 5 });
    await settle();
    expect(numbers(live)).toEqual([5, 6, 7]);
    expect(new Set(shown).size).toBe(1);
  });

  test.each([0, 2])('and is closed on the way leaves nothing to the store that the page adds at %i', async (offset) => {
    await open();
    gateway.fates.push('rows late');
    live.move({ offset: 2 });
    await settle(0);
    live.close();
    const store = tide.add({ ...order, limit: 3, offset });
    expect(store.view.revision).toBe('');
    gateway.answer(); // the rows come to the old stream
    await pass();
    await settle();
    await settle();
    expect([...store.resources.keys()]).toEqual(offset ? ['k2', 'k3', 'k4'] : ['k0', 'k1', 'k2']);
    expect(streams().at(-1)!.lastEventId ?? '').not.toContain('w@'); // it would resume, without any row
  });

  test('and has moved resumes with its position', async () => {
    await open();
    live.move({ offset: 2 });
    await settle();
    server.stream.end();
    await pass(5_000);
    expect(server.stream.lastEventId).toBe('w@e-2');
    expect(server.stream.url.searchParams.get('offset.w')).toBe('2');
  });

  test('sends the headers and the credentials of its stream', async () => {
    const { fetch } = globalThis;
    const sent: RequestInit[] = [];
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
      if (url.includes('/window')) sent.push(init);
      return fetch(url, init);
    });
    await open({ getToken: () => 'secret', headers: { 'X-Page': '1' }, credentials: 'include' });
    live.move({ offset: 2 });
    await settle();
    expectMoved(2, 3, 4);
    expect(sent).toMatchObject([
      { method: 'POST', headers: { Authorization: 'Bearer secret', 'X-Page': '1' }, credentials: 'include', redirect: 'error' },
    ]);
  });

  test('moves on a stream that is logged', async () => {
    await open({ transport: logged(() => {}) });
    live.move({ offset: 2 });
    await settle();
    expectMoved(2, 3, 4);
    expect([streams().length, moves().length]).toEqual([1, 1]);
  });

  test('takes another stream with a transport that cannot move it', async () => {
    const { post: _, ...transport } = fetchTransport;
    await open({ transport });
    live.move({ offset: 2 });
    await settle();
    expectMoved(2, 3, 4);
    expect(moves()).toEqual([]);
  });
});

describe('with an EventSource', () => {
  const hello = { type: 'hello', heartbeat_ms: 15_000, stream: 's0', watches: [{ watch: 'w', mode: 'snapshot' }] };
  const upsert = (n: number) => ({ type: 'upsert', watch: 'w', key: `k${n}`, revision: '1', value: { n } });

  test.each([
    ['alone', eventSourceTransport, undefined],
    ['with a token', authenticated({ transport: eventSourceTransport, getToken: () => 'secret', tickets: true }), 'Bearer secret'],
  ])('%s, a window moves on its stream', async (_, transport, authorization) => {
    vi.stubGlobal('EventSource', FakeEventSource);
    const { fetch } = globalThis;
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
      if (url.endsWith('/v1/session'))
        return Promise.resolve(new Response(JSON.stringify({ name: 'ada', issuer: '', mechanism: 'jwt', tag: 'a' })));
      if (url.endsWith('/v1/tickets')) return Promise.resolve(new Response(JSON.stringify({ ticket: 't' })));
      return fetch(url, init);
    });
    tide = watch<{ w: Row }>('http://gateway.test/live/', { transport });
    live = watchWindow(tide, { ...order, limit: 1 });
    await pass(10);
    const source = FakeEventSource.last;
    source.tell(hello);
    source.tell({ type: 'reset', watch: 'w', reason: 'initial' }, 'w@e-0/1');
    source.tell(upsert(0));
    source.tell({ type: 'end_of_snapshot', watch: 'w', revision: '1', count: 1, total: 2, before: 0, next: 'x' }, 'w@e-1');
    await pass();
    live.move({ offset: 1 });
    await pass();
    expect(server.last.url.pathname).toBe('/live/v1/streams/s0/window');
    expect(server.last.headers.get('Authorization')).toBe(authorization ?? null);
    server.last.answer(new Response('{"move":1}'));
    source.tell({ type: 'delete', watch: 'w', key: 'k0', revision: '1', left: true });
    source.tell(upsert(1));
    source.tell({ type: 'bookmark', watch: 'w', revision: '1', total: 2, before: 1, move: 1 }, 'w@f-1');
    await pass();
    expect(numbers(live)).toEqual([1]);
    expect(live.view.moving).toBe(false);
    expect(FakeEventSource.last).toBe(source);
  });
});
