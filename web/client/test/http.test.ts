import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RefusedError } from '../src/errors.js';
import { ConflictError, http, type Requests } from '../src/http.js';
import type { Resource } from '../src/resource.js';

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
  readonly signal: AbortSignal;
}

let asked: Asked[];
let answers: Array<(request: Asked) => Response | Promise<Response>>;
const notes: Requests<{ notes: number }> = http('http://gateway.test/live/');

const problem =
  (status: number, more: object = {}) =>
  () =>
    new Response(JSON.stringify({ type: 'about:blank', title: 'No', status, detail: `refused with ${status}`, ...more }), {
      status,
      headers: { 'Content-Type': 'application/problem+json' },
    });
const json =
  (value: unknown, status = 200) =>
  () =>
    Response.json(value, { status });
const resource = { key: 'k', revision: '7', value: 1 };

beforeEach(() => {
  asked = [];
  answers = [];
  vi.useFakeTimers();
  vi.stubGlobal('fetch', async (url: string, { method, headers, body, signal, redirect, cache }: RequestInit) => {
    expect([redirect, cache]).toEqual(['error', 'no-store']);
    asked.push({
      method: method!,
      path: url.replace('http://gateway.test/live/v1/watches/', ''),
      headers: new Headers(headers),
      body,
      signal: signal!,
    });
    return answers.shift()!(asked.at(-1)!);
  });
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.unstubAllGlobals();
});

test('get returns a resource, undefined if it does not exist, and rejects if there is no such watch', async () => {
  answers.push(json(resource), problem(404, { watch: 'notes', key: 'k' }), problem(404, { watch: 'notes' }));
  const typed: Resource<number> | undefined = await notes.get('notes', 'k');
  expect(typed).toEqual(resource);
  expect(await notes.get('notes', 'k')).toBeUndefined();
  await expect(notes.get('notes', 'k')).rejects.toMatchObject({ name: 'RefusedError', status: 404, problem: { watch: 'notes' } });
});

test.each([
  ['a/b ü?', 'notes/resources/a%2Fb%20%C3%BC%3F'],
  ['..', 'notes/resources/Li4%3D?key_encoding=base64'],
  ['.', 'notes/resources/Lg%3D%3D?key_encoding=base64'],
  ['\udfff//4=', 'notes/resources/%2F%2F4%3D?key_encoding=base64'],
  [{ key: '//4=', key_encoding: 'base64' } as const, 'notes/resources/%2F%2F4%3D?key_encoding=base64'],
])('the key %j has a path', async (key, path) => {
  answers.push(json(resource));
  await notes.get('notes', key);
  expect(asked[0]?.path).toBe(path);
});

test('put and delete name the revision that must be there, or that there is none', async () => {
  answers.push(json(resource), json(resource, 201), json(resource), json({ deleted: true }));
  await notes.put('notes', 'k', 1, { revision: '6' });
  await notes.put('notes', 'k', 1, { revision: null });
  expect(await notes.put('notes', 'k', 1, { validateOnly: true })).toEqual(resource);
  expect(await notes.delete('notes', 'k', { revision: '7' })).toBe(true);
  expect(
    asked.map(({ method, path, headers, body }) => [method, path, headers.get('If-Match'), headers.get('If-None-Match'), body]),
  ).toEqual([
    ['PUT', 'notes/resources/k', '"6"', null, '1'],
    ['PUT', 'notes/resources/k', null, '*', '1'],
    ['PUT', 'notes/resources/k?validate_only=true', null, null, '1'],
    ['DELETE', 'notes/resources/k', '"7"', null, undefined],
  ]);
});

test.each([
  ['the resource', json(resource), resource],
  ['null if there is none', problem(404, { watch: 'notes', key: 'k' }), null],
  ['undefined if it cannot be read', problem(503), undefined],
])('a conflict has %s', async (_, answer, current) => {
  answers.push(problem(412, { watch: 'notes', key: 'k' }), answer);
  const error = await notes.put('notes', 'k', 2, { revision: '6' }).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(ConflictError);
  expect(error).toBeInstanceOf(RefusedError);
  expect(error).toMatchObject({ name: 'ConflictError', status: 412, current, message: 'refused with 412' });
});

test('a value that is not JSON is not sent', async () => {
  await expect(http('/').put('notes', 'k', undefined)).rejects.toThrow('the value of "k" is not JSON');
  expect(asked).toEqual([]);
});

const page = (keys: number[], next?: string) =>
  json({
    watch: 'notes',
    position: 'notes@e-9',
    revision: '9',
    count: 3,
    resources: keys.map((key) => ({ ...resource, key: `k${key}` })),
    ...(next && { next_page_token: next }),
  });

test('list returns the pages, and snapshot all of them at once', async () => {
  answers.push(page([1, 2], 't1'), page([3]), page([1, 2], 't2'), page([3]));
  const spec = { watch: 'notes' as const, prefix: 'k', fields: ['a', 'b'] };
  const pages = [];
  for await (const { resources, count } of notes.list(spec, { pageSize: 2 })) pages.push([count, resources.map(({ key }) => key)]);
  expect(pages).toEqual([
    [3, ['k1', 'k2']],
    [3, ['k3']],
  ]);
  expect(asked.map(({ path }) => path)).toEqual([
    'notes/resources?prefix=k&fields=a%2Cb&page_size=2',
    'notes/resources?prefix=k&fields=a%2Cb&page_size=2&page_token=t1',
  ]);
  const { resources, ...rest } = await notes.snapshot('notes');
  expect([resources.length, rest]).toEqual([3, { position: 'notes@e-9', revision: '9', since: Date.now() }]);
});

test('counts are listed as resources are', async () => {
  answers.push(page([1, 2], 't1'), page([3]));
  const { resources } = await notes.snapshot({ watch: 'notes', by: ['a', 'b'], sum: 'n', filter: 'true' });
  expect(resources).toHaveLength(3);
  expect(asked.map(({ path }) => path)).toEqual([
    'notes/counts?filter=true&by=a%2Cb&sum=n',
    'notes/counts?filter=true&by=a%2Cb&sum=n&page_token=t1',
  ]);
});

test('a snapshot whose pages are gone is begun again, twice at most', async () => {
  answers.push(page([1, 2], 't1'), problem(410), page([3]));
  expect((await notes.snapshot('notes')).resources).toHaveLength(1);
  answers.push(problem(410), problem(410), problem(410));
  await expect(notes.snapshot('notes')).rejects.toMatchObject({ status: 410 });
});

test('a token that is refused is replaced once', async () => {
  const getToken = vi.fn(({ expired }: { expired: boolean }) => (expired ? 'new' : 'old'));
  const requests = http('http://gateway.test/live', { getToken, headers: { 'X-A': 'b' } });
  answers.push(problem(401), json(resource), problem(401), problem(401));
  await requests.get('notes', 'k');
  expect(asked.map(({ headers }) => [headers.get('Authorization'), headers.get('X-A')])).toEqual([
    ['Bearer old', 'b'],
    ['Bearer new', 'b'],
  ]);
  await expect(requests.get('notes', 'k')).rejects.toMatchObject({ status: 401 });
});

const never = ({ signal }: Asked) => new Promise<Response>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

test('a request without an answer ends after the timeout, or when its signal aborts', async () => {
  answers.push(never, never);
  const late = expect(notes.get('notes', 'k')).rejects.toThrow('did not answer for 30 s');
  await vi.advanceTimersByTimeAsync(30_000);
  await late;
  const stop = new AbortController();
  const stopped = expect(notes.put('notes', 'k', 1, { signal: stop.signal })).rejects.toThrow('enough');
  stop.abort(new Error('enough'));
  await stopped;
  await expect(notes.get('notes', 'k', { signal: stop.signal })).rejects.toThrow('enough');
  expect(asked).toHaveLength(2);
});

test('a token that does not come ends a request', async () => {
  const requests = http('http://gateway.test/live/', { getToken: () => new Promise(() => {}) });
  const late = expect(requests.get('notes', 'k')).rejects.toThrow('getToken did not answer for 10 s');
  await vi.advanceTimersByTimeAsync(10_000);
  await late;
  const stop = new AbortController();
  const stopped = expect(requests.get('notes', 'k', { signal: stop.signal })).rejects.toThrow('enough');
  stop.abort(new Error('enough'));
  await stopped;
  expect(asked).toHaveLength(0);
});

test('a timeout that no timer can measure is none', async () => {
  answers.push(() => new Promise((resolve) => setTimeout(() => resolve(json(resource)()), 60_000)));
  const answer = http<{ notes: number }>('http://gateway.test/live/', { timeoutMs: Infinity }).get('notes', 'k');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await answer).toEqual(resource);
});

test('a page of a proxy is an error', async () => {
  answers.push(
    () => new Response('<html>', { status: 200 }),
    () => new Response('<html>', { status: 404 }),
    json('text'),
  );
  await expect(notes.get('notes', 'k')).rejects.toThrow();
  await expect(notes.get('notes', 'k')).rejects.toMatchObject({ status: 404, problem: undefined });
  await expect(notes.get('notes', 'k')).rejects.toThrow('does not answer as a gateway does');
});
