import { describe, expect, test, vi } from 'vitest';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { goodbye, hello, pass, reset, upsert } from './server.js';

const f = following();

describe('a request', () => {
  test('covers all watches, and has an Accept header', async () => {
    f.tide = watch(url, { watches: ['a', { watch: 'b', prefix: 'x/' }], headers: { 'X-Team': 'tide' } });
    f.tide.add('c');
    await pass();
    expect(f.server.exchanges).toHaveLength(1);
    expect(f.server.last.url.href).toBe('http://gateway.test/live/v1/events?watch=a&watch=b&prefix.b=x%2F&watch=c');
    expect(Object.fromEntries(f.server.last.headers)).toEqual({ accept: '*/*', incremental: '?1', 'x-team': 'tide' });
  });

  test.each([
    ['http://gateway.test', '?1'],
    ['https://gateway.test', null],
    ['http://page.test', null],
    ['null', null],
  ])('of a page of %s has Incremental: %s', async (origin, incremental) => {
    vi.stubGlobal('location', { origin });
    await f.start();
    expect(f.server.last.headers.get('Incremental')).toBe(incremental);
  });

  test('carries the newest id, even of a bookmark without changes', async () => {
    const store = await f.follow();
    f.server.last.send('event: bookmark\ndata: {"type":"bookmark","watch":"w","revision":"9"}\nid: w@e-9\n\n');
    await pass();
    f.server.last.cut();
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
    expect(f.server.last.lastEventId).toBe('w@e-9');
    expect(store.position).toBe('w@e-9');
  });

  test('carries the id of a snapshot that was cut off', async () => {
    await f.start();
    f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 3, 1, 'w@e-3/5') + upsert('w', 'b', 5, 1));
    await pass();
    f.server.last.cut();
    await pass(1_000);
    expect(f.server.last.lastEventId).toBe('w@e-3/5');
  });

  test('carries a token, requested each time', async () => {
    const getToken = vi.fn(async () => `token-${getToken.mock.calls.length}`);
    await f.follow({ getToken });
    expect(f.server.last.headers.get('Authorization')).toBe('Bearer token-1');
    f.server.last.send(goodbye('token_expired', 10));
    f.server.last.end();
    await pass(1_000);
    expect(f.server.last.headers.get('Authorization')).toBe('Bearer token-2');
    expect(getToken.mock.calls).toEqual([[{ expired: false }], [{ expired: true }]]);
  });

  test('waits for its token, and tries again if there is none', async () => {
    const getToken = vi.fn<() => Promise<string>>().mockRejectedValueOnce(new Error('signed out')).mockResolvedValue('t');
    f.tide = watch(url, { watches: ['w'], getToken });
    await pass();
    expect(f.tide.store('w').view).toMatchObject({ state: 'connecting', reason: 'signed out' });
    expect(f.server.exchanges).toHaveLength(0);
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(1);
  });
});

describe('an answer', () => {
  test('that is a page instead of a stream is reported as such', async () => {
    await f.start();
    f.server.last.answer(new Response('<!doctype html>', { headers: { 'Content-Type': 'text/html' } }));
    await pass();
    expect(f.tide.store('w').state).toBe('connecting');
    expect(f.tide.store('w').view.reason).toContain('text/html');
  });

  test('with an event that is not JSON is a lost connection', async () => {
    const store = await f.follow();
    f.server.last.send('data: {"type":\n\n');
    await pass();
    expect(store.state).toBe('offline');
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });
});
