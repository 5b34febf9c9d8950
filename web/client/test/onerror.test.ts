import { describe, expect, test, vi } from 'vitest';
import { NotAStreamError, RefusedError } from '../src/errors.js';
import { following } from './following.js';
import { goodbye, hello, pass, snapshot } from './server.js';

const f = following();

const page = (status: number) => new Response('<!doctype html>', { status, headers: { 'Content-Type': 'text/html' } });

describe('an answer that is not of the gateway', () => {
  test.each([204, 400, 401, 403, 404, 406])('a page with %i is not final', async (status) => {
    await f.start();
    f.server.last.answer(status === 204 ? new Response(null, { status }) : page(status));
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
    expect(f.tide.store('w').view).toMatchObject({ state: 'connecting', reason: `the server answered with status ${status}` });
    f.server.last.accept(snapshot('w'));
    await pass();
    expect(f.tide.store('w').state).toBe('in_sync');
  });

  test('a page in place of a stream is not final', async () => {
    await f.start();
    f.server.last.answer(page(200));
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test.each([
    ['of another server', { type: 'https://proxy.example/problems/denied', title: 'Denied', status: 403, detail: 'denied' }],
    ['with another status', { type: 'about:blank', title: 'Denied', status: 404, detail: 'denied' }],
    ['without detail', { type: 'about:blank', title: 'Denied', status: 403 }],
    ['that is null', null],
  ])('a problem %s is not final', async (_, problem) => {
    await f.start();
    f.server.last.refuse(403, {}, problem as object);
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('JSON that is not a problem is not final', async () => {
    await f.start();
    f.server.last.refuse(404, { 'Content-Type': 'application/json' });
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });
});

describe('a 401', () => {
  test('asks for another token, once', async () => {
    const getToken = vi.fn(({ expired }: { expired: boolean }) => (expired ? 'new' : 'old'));
    await f.start({ getToken });
    f.server.last.refuse(401);
    await pass();
    expect(f.server.exchanges.map(({ headers }) => headers.get('Authorization'))).toEqual(['Bearer old', 'Bearer new']);
    f.server.last.refuse(401);
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(2);
    expect(f.tide.store('w').view).toMatchObject({ state: 'closed', error: { status: 401 } });
  });

  test('asks for another token again after a stream', async () => {
    const getToken = vi.fn(() => 't');
    await f.start({ getToken });
    f.server.last.refuse(401);
    await pass();
    f.server.last.accept(hello(['w']) + goodbye('draining', 10)).end();
    await pass(5_000);
    f.server.last.refuse(401);
    await pass();
    expect(f.server.exchanges).toHaveLength(4);
    expect(f.tide.store('w').state).not.toBe('closed');
  });

  test('of a proxy asks for another token, once at once', async () => {
    const getToken = vi.fn(() => 't');
    await f.start({ getToken });
    f.server.last.answer(page(401));
    await pass();
    expect(f.server.exchanges).toHaveLength(2);
    f.server.last.answer(page(401));
    await pass();
    expect(f.server.exchanges).toHaveLength(2);
    await pass(30_000);
    expect(f.server.exchanges).toHaveLength(3);
    expect(getToken.mock.calls).toEqual([[{ expired: false }], [{ expired: true }], [{ expired: true }]]);
  });
});

describe('a stream that ends at once because of its token', () => {
  const expired = (asked: number) => hello(['w']) + goodbye('token_expired', asked);

  /** Returns the number of requests in this time, to a server that ends each stream at once. */
  async function requests(ms: number, answer: () => void): Promise<number> {
    for (let passed = 0; passed < ms; passed += 100) {
      if (!f.server.last.open && !f.server.last.signal.aborted) answer();
      await pass(100);
    }
    return f.server.exchanges.length;
  }

  test('is followed by one at once, and then by those for which the server asks', async () => {
    await f.start({ getToken: () => 'the same' });
    expect(await requests(20_000, () => f.server.last.accept(expired(5_000)).end())).toBeLessThan(6);
  });

  test.each([0, -1, 1])('is asked for more and more rarely, even if the server asks for %i ms', async (asked) => {
    await f.start({ getToken: () => 'the same' });
    expect(await requests(600_000, () => f.server.last.accept(expired(asked)).end())).toBeLessThan(60);
  });

  test('and by a refusal in turn is final', async () => {
    await f.start({ getToken: () => 'the same' });
    let turn = 0;
    const both = () => (turn++ % 2 ? f.server.last.refuse(401) : f.server.last.accept(expired(0)).end());
    expect(await requests(60_000, both)).toBeLessThan(4);
    expect(f.tide.store('w').view).toMatchObject({ state: 'closed', error: { status: 401 } });
  });

  test('after a healthy one is followed by one at once', async () => {
    const store = await f.follow({ getToken: () => 'the same' });
    for (let round = 2; round < 5; round++) {
      for (let beat = 0; beat < 6; beat++) {
        await pass(12_000);
        f.server.last.send(': \n\n');
      }
      f.server.last.send(goodbye('token_expired', 5_000));
      f.server.last.end();
      await pass();
      expect(f.server.exchanges).toHaveLength(round);
      f.server.last.accept(snapshot('w'));
      await pass();
    }
    expect(store.state).toBe('in_sync');
  });
});

describe('onError', () => {
  test('is told of each failure, and whether it is final', async () => {
    const onError = vi.fn();
    await f.start({ onError });
    f.server.last.fail();
    await pass(1_000);
    f.server.last.answer(page(200));
    await pass(2_000);
    f.server.last.accept(hello(['w']) + goodbye('draining', 10)).end(); // no failure
    await pass(4_000);
    f.server.last.refuse(403);
    await pass();
    expect(onError.mock.calls.map(([error, { final }]) => [error.constructor, final])).toEqual([
      [TypeError, false],
      [NotAStreamError, false],
      [RefusedError, true],
    ]);
    expect(f.tide.store('w').state).toBe('closed');
  });

  test('may answer with new headers, also to a refusal, after a pause', async () => {
    await f.start({ headers: { A: '1', B: '1' }, onError: async () => ({ headers: { A: '2' } }) });
    f.server.last.refuse(403);
    await pass();
    expect(f.server.exchanges).toHaveLength(1);
    await pass(1_000);
    expect([f.server.last.headers.get('A'), f.server.last.headers.get('B')]).toEqual(['2', null]);
    f.server.last.accept(snapshot('w'));
    await pass();
    expect(f.tide.store('w').state).toBe('in_sync');
  });

  test('may stop the client', async () => {
    await f.start({ onError: () => 'stop' });
    f.server.last.fail('no route');
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(1);
    expect(f.tide.store('w').view).toMatchObject({ state: 'closed', reason: 'no route' });
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('a mistake');
      },
    ],
    ['never answers', () => new Promise<void>(() => {})],
  ])('that %s does not stop the client', async (_, onError) => {
    await f.start({ onError });
    f.server.last.fail();
    await pass(11_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('that never answers does not outlive the client', async () => {
    await f.start({ onError: () => new Promise<void>(() => {}) });
    f.server.last.fail();
    await pass();
    f.tide.close();
    await pass();
    expect(f.tide.store('w').state).toBe('closed');
  });
});

describe('a getToken that hangs', () => {
  test('is a failure after a while', async () => {
    const getToken = vi
      .fn<() => string | Promise<string>>()
      .mockReturnValueOnce(new Promise(() => {}))
      .mockReturnValue('t');
    await f.start({ getToken });
    await pass(10_000);
    expect(f.tide.store('w').view).toMatchObject({ state: 'connecting', reason: 'getToken did not answer for 10 s' });
    await pass(1_000);
    expect(f.server.last.headers.get('Authorization')).toBe('Bearer t');
  });

  test('does not outlive the client', async () => {
    await f.start({ getToken: () => new Promise(() => {}) });
    f.tide.close();
    await pass();
    expect(f.server.exchanges).toEqual([]);
  });
});

test.each([true, 1, 'again', {}, { headers: undefined }])(
  'the answer %j, which only JavaScript can give, does not lift a final refusal',
  async (answer) => {
    await f.start({ onError: (() => answer) as never });
    f.server.last.refuse(404);
    await pass(600_000);
    expect([f.server.exchanges.length, f.tide.store('w').state]).toEqual([1, 'closed']);
  },
);
