import { beforeEach, describe, expect, test, vi } from 'vitest';
import { beginSession, endSession, getSession } from '../src/session.js';
import { following, url } from './following.js';
import { Gateway } from './gateway.js';

following();
let gateway: Gateway;

beforeEach(() => { gateway = new Gateway(); });

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
    vi.stubGlobal('fetch', async () => new Response('', { status: 404 }));
    expect(await getSession('/')).toEqual({ name: '', issuer: '', mechanism: 'anonymous', tag: '' });
  });
});

