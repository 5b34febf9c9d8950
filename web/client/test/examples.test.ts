// @vitest-environment happy-dom
import { IDBFactory, IDBObjectStore } from 'fake-indexeddb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
// @ts-expect-error: the examples are JavaScript
import { follow, handler, render } from '../examples/server-rendering.js';
// @ts-expect-error: the examples are JavaScript
import { followStored } from '../examples/stored-rows.js';
import { endSession } from '../src/auth.js';
import { Exchange, endOfSnapshot, hello, reset, upsert } from './server.js';

const gateway = 'http://gateway.test';

let streams: Exchange[];
let tag: string;
let asked: Headers[];
let rows: unknown[];
let listed: number;
let offline: boolean;

const settle = () => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => unknown): Promise<void> {
  while (!condition()) await settle();
}

function answer(url: URL, init: RequestInit): Response {
  if (offline) throw new TypeError('connection refused');
  if (url.pathname === '/v1/session')
    return init.method === 'DELETE' ? new Response() : Response.json({ name: tag, mechanism: 'jwt', tag });
  asked.push(new Headers(init.headers));
  if (listed !== 200) return new Response('no', { status: listed });
  return Response.json({ watch: 'notes', revision: '5', position: 'notes@e-5', count: rows.length, resources: rows });
}

beforeEach(() => {
  streams = [];
  asked = [];
  tag = 'anna';
  listed = 200;
  offline = false;
  rows = [{ key: 'k</script>1', revision: '5', value: '<b>' }];
  vi.stubGlobal('indexedDB', new IDBFactory());
  vi.stubGlobal('fetch', (address: string, init: RequestInit) => {
    const url = new URL(address);
    if (!url.pathname.endsWith('/events')) return Promise.resolve().then(() => answer(url, init));
    return new Promise((resolve, reject) =>
      streams.push(new Exchange(url, new Headers(init.headers), init.signal as AbortSignal, [resolve, reject])),
    );
  });
});
afterEach(() => void vi.unstubAllGlobals());

test('a page that a server has rendered shows its rows, and resumes without a snapshot', async () => {
  document.documentElement.innerHTML = (await render(gateway, { headers: { Cookie: 'session=anna' } }))
    .replace(/<!doctype html>/, '')
    .replace(/<script type="module".*?<\/script>/, '');
  expect(asked[0]?.get('Cookie')).toBe('session=anna');
  const text = () => document.querySelector('ul')!.textContent;
  expect(text()).toBe('k</script>1: "<b>"');
  const { tide, snapshot } = follow(gateway, document);
  await until(() => streams.length);
  expect([text(), streams[0]!.lastEventId]).toEqual(['k</script>1: "<b>"', 'notes@e-5']);
  streams[0]!.accept(hello(['notes'], 'resume') + upsert('notes', 'k2', 6, 2) + endOfSnapshot('notes', 6, 2, 'notes@e-6', true));
  await until(() => tide.store('notes').state === 'in_sync');
  expect([text(), snapshot().position]).toEqual(['k</script>1: "<b>"k2: 2', 'notes@e-6']);
  tide.close();
});

test('the server answers with its page, or with the status of the gateway', async () => {
  const answers: unknown[][] = [];
  const response = {
    writeHead: (status: number, headers: Record<string, string>) => ({
      end: (body: string) => answers.push([status, headers['Cache-Control'], body]),
    }),
  };
  await handler(gateway)({ headers: { cookie: 'session=anna' } }, response);
  listed = 503;
  await handler(gateway)({ headers: {} }, response);
  expect(answers).toEqual([
    [200, 'no-store', expect.stringContaining('id="initial"')],
    [503, undefined, 'the server answered with status 503'],
  ]);
});

const snapshot = () =>
  hello(['notes']) + reset('notes', 'notes@e-0/5') + upsert('notes', 'a', 5, tag) + endOfSnapshot('notes', 5, 1, 'notes@e-5');

async function visit(): Promise<{
  store: { state: string; resources: ReadonlyMap<string, unknown> };
  close: () => void;
  stream: Exchange;
}> {
  const before = streams.length;
  const visited = await followStored(gateway, 'notes');
  await until(() => streams.length > before);
  return { ...visited, stream: streams.at(-1)! };
}

async function visitAndStore(): Promise<Awaited<ReturnType<typeof visit>>> {
  const visited = await visit();
  visited.stream.accept(snapshot());
  await until(() => visited.store.state === 'in_sync');
  visited.close();
  for (let i = 0; i < 20; i++) await settle();
  return visited;
}

test('rows that were stored are shown on the next visit, and the stream resumes', async () => {
  expect((await visitAndStore()).stream.lastEventId).toBeNull();
  const { store, stream, close } = await visit();
  expect([store.state, [...store.resources.keys()], stream.lastEventId]).toEqual(['stale', ['a'], 'notes@e-5']);
  close();
});

test('another user sees nothing of them, and they are erased', async () => {
  await visitAndStore();
  tag = 'ben';
  const other = await visit();
  expect([other.store.resources.size, other.stream.lastEventId]).toEqual([0, null]);
  other.close();
  tag = 'anna';
  const back = await visit();
  expect(back.store.resources.size).toBe(0);
  back.close();
});

test('they are erased when the session ends', async () => {
  await visitAndStore();
  const { store } = await visit();
  await endSession(gateway);
  await until(() => store.state === 'closed');
  for (let i = 0; i < 20; i++) await settle();
  const next = await visit();
  expect(next.store.resources.size).toBe(0);
  next.close();
});

test('the page does not keep others from deleting the database', async () => {
  const { close } = await visit();
  const erased = indexedDB.deleteDatabase('watchtide');
  await until(() => erased.readyState === 'done');
  close();
});

describe('the watch is followed without stored rows', () => {
  beforeEach(() => void vi.spyOn(console, 'warn').mockImplementation(() => {}));
  afterEach(() => void vi.restoreAllMocks());

  const begunEmpty = async () => {
    const visited = await followStored(gateway, 'notes');
    expect(visited.store.resources.size).toBe(0);
    offline = false;
    await until(() => streams.at(-1)?.signal.aborted === false);
    streams.at(-1)!.accept(snapshot());
    await until(() => visited.store.state === 'in_sync');
    visited.close();
  };

  test('where there is no IndexedDB', async () => {
    vi.stubGlobal('indexedDB', undefined);
    await begunEmpty();
  });

  test('where it cannot be opened', async () => {
    vi.stubGlobal('indexedDB', { open: () => { throw new DOMException('denied', 'SecurityError'); } }); // biome-ignore format: short
    await begunEmpty();
  });

  test.each([
    ['open', { open: () => ({}) }],
    ['read', undefined],
  ])('where it never answers a request to %s', async (_request, silent) => {
    await visitAndStore();
    streams = [];
    if (silent) vi.stubGlobal('indexedDB', silent);
    else vi.spyOn(IDBObjectStore.prototype, 'getAllKeys').mockReturnValue({} as IDBRequest<IDBValidKey[]>);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const begun = begunEmpty();
    for (let i = 0; i < 20; i++) await settle();
    vi.advanceTimersByTime(2_000);
    vi.useRealTimers();
    await begun;
    expect(console.warn).toHaveBeenCalledWith(expect.objectContaining({ message: 'IndexedDB does not answer' }));
  });

  test('where the gateway cannot be reached at first', async () => {
    await visitAndStore();
    streams = [];
    offline = true;
    await begunEmpty();
  });

  test.each([[null], ['text'], [{}], [{ position: 'notes@e-5', revision: '5', since: 1, resources: [null] }], [{ position: 5 }]])(
    'where what is stored is %j',
    async (damaged) => {
      await visitAndStore();
      streams = [];
      const request = indexedDB.open('watchtide', 1);
      await until(() => request.readyState === 'done');
      request.result.transaction('snapshots', 'readwrite').objectStore('snapshots').put(damaged, ['anna', 'notes']);
      for (let i = 0; i < 20; i++) await settle();
      request.result.close();
      await begunEmpty();
    },
  );

  test('where there is no room to store them', async () => {
    const full = vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
      throw new DOMException('full', 'QuotaExceededError');
    });
    await begunEmpty();
    for (let i = 0; i < 20; i++) await settle();
    expect(full).toHaveBeenCalled();
    expect(console.warn).toHaveBeenCalledWith(expect.objectContaining({ name: 'QuotaExceededError' }));
  });
});
