import { beforeEach, describe, expect, test, vi } from 'vitest';
import { beginSession, endSession, getSession, getTicket } from '../src/session.js';
import { following, url } from './following.js';
import { Gateway } from './gateway.js';
import { pass } from './server.js';

following();
let gateway: Gateway;

beforeEach(() => {
  gateway = new Gateway();
});

describe('a session', () => {
  test('begins, is told, and ends', async () => {
    gateway.tokens.one = { tag: 'alice' };
    await beginSession(url, 'one');
    expect(await getSession(url)).toMatchObject({ name: 'alice', tag: 'alice' });
    await endSession(url);
    expect(gateway.log).toEqual(['POST session one', 'GET session', 'DELETE session']);
    await expect(getSession(url)).rejects.toMatchObject({ status: 401, problem: { detail: 'refused with 401' } });
  });

  test('of nobody has an empty tag', async () => {
    gateway.anonymous = true;
    expect(await getSession(url)).toEqual({ name: '', issuer: '', mechanism: 'anonymous', tag: '' });
  });

  test('does not begin with a wrong token', async () => {
    await expect(beginSession(url, 'wrong')).rejects.toMatchObject({ status: 401 });
  });

  test('is of nobody where there are none', async () => {
    const problem = { type: 'about:blank', title: 'Not Found', status: 404, detail: 'there is nothing at /v1/session' };
    vi.stubGlobal(
      'fetch',
      async () => new Response(JSON.stringify(problem), { status: 404, headers: { 'Content-Type': 'application/problem+json' } }),
    );
    expect(await getSession('/')).toEqual({ name: '', issuer: '', mechanism: 'anonymous', tag: '' });
  });

  test.each([
    ['a page', new Response('<!doctype html>', { status: 404, headers: { 'Content-Type': 'text/html' } })],
    ['other JSON', Response.json({ ok: true })],
    ['null', Response.json(null)],
  ])('is unknown if a proxy answers with %s', async (_, response) => {
    vi.stubGlobal('fetch', async () => response);
    await expect(getSession('/')).rejects.not.toMatchObject({ fatal: true });
  });
});

describe('an answer whose body never ends', () => {
  const endless = () => vi.stubGlobal('fetch', async () => new Response(new ReadableStream()));
  const requests = [
    ['getSession', (signal?: AbortSignal) => getSession(url, { ...(signal && { signal }) })],
    ['getTicket', (signal?: AbortSignal) => getTicket(url, ['w'], { ...(signal && { signal }) })],
  ] as const;

  test.each(requests)('fails %s after ten seconds', async (_, request) => {
    endless();
    const failed = expect(request()).rejects.toThrow('no answer');
    await pass(10_000);
    await failed;
  });

  test.each(requests)('ends %s with the signal', async (_, request) => {
    endless();
    const page = new AbortController();
    const failed = expect(request(page.signal)).rejects.toThrow('left');
    await pass(10);
    page.abort(new Error('left'));
    await failed;
  });
});
