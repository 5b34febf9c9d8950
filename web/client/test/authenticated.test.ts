import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type AuthenticatedOptions, authenticated } from '../src/authenticated.js';
import { eventSourceTransport } from '../src/event_source.js';
import { Hub, sharedTransport } from '../src/shared.js';
import { watch } from '../src/watch.js';
import { FakeEventSource } from './fake_event_source.js';
import { following, url } from './following.js';
import { Gateway } from './gateway.js';
import { endOfSnapshot, goodbye, hello, pass, reset, snapshot, upsert, wire } from './server.js';

const f = following();
let gateway: Gateway;

beforeEach(() => {
  gateway = new Gateway();
  FakeEventSource.all = [];
  vi.stubGlobal('EventSource', FakeEventSource);
});

/** Follows w with a token, or with the cookie. */
async function start(options: AuthenticatedOptions = {}) {
  f.tide = watch(url, { watches: ['w'], transport: authenticated(options) });
  await pass();
  return f.tide.store('w');
}

const named = (stream: string) =>
  wire({ type: 'hello', heartbeat_ms: 15_000, stream, watches: [{ watch: 'w', mode: 'snapshot' }] } as never);
const rest = (value: unknown) => reset('w', 'w@e-0/5') + upsert('w', 'a', 5, value) + endOfSnapshot('w', 5, 1, 'w@e-5');
const authorization = () => gateway.streams.map(({ headers }) => headers.get('Authorization'));

/** Returns one token after the other, and keeps the hints. */
function tokens(...all: string[]) {
  const hints: boolean[] = [];
  const getToken = ({ expired }: { expired: boolean }) => {
    hints.push(expired);
    return all.length > 1 ? all.shift()! : all[0]!;
  };
  return { getToken, hints };
}

describe('a token', () => {
  test('is sent with the stream, once it is known whose it is', async () => {
    gateway.tokens.one = { tag: 'alice' };
    const store = await start(tokens('one'));
    expect(gateway.log).toEqual(['GET session one']);
    expect(authorization()).toEqual(['Bearer one']);
    gateway.last.accept(snapshot('w', 'secret'));
    await pass();
    expect(store.resources.get('a')!.value).toBe('secret');
  });

  test('that is refused is replaced once', async () => {
    gateway.tokens.two = { tag: 'alice' };
    const { getToken, hints } = tokens('one', 'two');
    await start({ getToken });
    expect(hints).toEqual([false, true]);
    expect(authorization()).toEqual(['Bearer two']);
  });

  test.each([[['one']], [['one', 'two']]])('%j that is refused for good closes the store', async (all) => {
    const store = await start(tokens(...all));
    await pass(600_000);
    expect(store.view).toMatchObject({ state: 'closed', error: { status: 401 } });
    expect(gateway.streams).toHaveLength(0);
    expect(gateway.log).toEqual(all.map((token) => `GET session ${token}`));
  });

  test('that the stream refuses is replaced too', async () => {
    gateway.tokens.one = gateway.tokens.two = { tag: 'alice' };
    await start(tokens('one', 'two'));
    gateway.last.refuse(401);
    await pass();
    expect(authorization()).toEqual(['Bearer one', 'Bearer two']);
  });

  test('that has expired is replaced, and the stream resumes', async () => {
    gateway.tokens.one = gateway.tokens.two = { tag: 'alice' };
    const { getToken, hints } = tokens('one', 'two');
    const store = await start({ getToken });
    gateway.last.accept(snapshot('w') + goodbye('token_expired', 1_000)).end();
    await pass(999);
    expect(gateway.streams).toHaveLength(1);
    await pass(1);
    expect(hints).toEqual([false, true]);
    expect(authorization()).toEqual(['Bearer one', 'Bearer two']);
    expect(gateway.last.lastEventId).toBe('w@e-5');
    expect(store.state).toBe('in_sync');
  });

  test('of another user closes the store', async () => {
    gateway.tokens.one = { tag: 'alice' };
    gateway.tokens.two = { tag: 'bob' };
    const store = await start(tokens('one', 'two'));
    gateway.last.accept(snapshot('w') + goodbye('draining', 1_000)).end();
    await pass(600_000);
    expect(gateway.streams).toHaveLength(1);
    expect(store.view).toMatchObject({
      state: 'closed',
      error: { status: 401 },
      reason: 'another user is signed in now: load the page again',
    });
  });

  test('that cannot be had is asked for again', async () => {
    gateway.tokens.one = { tag: 'alice' };
    let asked = 0;
    const store = await start({
      getToken: async () => {
        if (++asked === 1) throw new Error('the provider is down');
        return 'one';
      },
    });
    expect(store.view.reason).toBe('the provider is down');
    await pass(1_000);
    expect(authorization()).toEqual(['Bearer one']);
  });

  test('that comes after the page has closed the connection is not used', async () => {
    let give = (_: string) => {};
    await start({
      getToken: () =>
        new Promise<string>((resolve) => {
          give = resolve;
        }),
    });
    f.tide.close();
    give('one');
    await pass();
    expect(gateway.log).toEqual([]);
  });

  test('is not needed for a gateway that knows no sessions', async () => {
    vi.stubGlobal('fetch', async (url: string) =>
      url.includes('/v1/session')
        ? new Response(JSON.stringify({ status: 404, title: 'Not Found', detail: 'nothing is here' }), {
            status: 404,
            headers: { 'Content-Type': 'application/problem+json' },
          })
        : new Response(snapshot('w', 7), { headers: { 'Content-Type': 'text/event-stream' } }),
    );
    const store = await start();
    expect(store.resources.get('a')!.value).toBe(7);
  });
});

describe('access that is revoked', () => {
  test.each([
    ['with', () => authenticated()],
    ['without', () => undefined],
  ])('closes the store, %s authenticated', async (_, transport) => {
    gateway.cookie = { tag: 'alice' };
    f.tide = watch(url, { watches: ['w'], ...(transport() && { transport: transport()! }) });
    const store = f.tide.store('w');
    await pass();
    gateway.last.accept(snapshot('w'));
    await pass();
    gateway.last.send(goodbye('revoked', 1_000));
    gateway.last.end();
    await pass(600_000);
    expect(gateway.streams).toHaveLength(1);
    expect(store.state).toBe('closed');
    expect(store.view.error).toMatchObject({ status: 403, message: 'the server said goodbye: revoked' });
  });

  test('to one watch of several closes only that one', async () => {
    gateway.cookie = { tag: 'alice' };
    f.tide = watch(url, { watches: ['w', 'lost'], transport: authenticated() });
    await pass();
    gateway.last.accept(
      hello(['w', 'lost']) +
        reset('w', 'w@e-0/5') +
        endOfSnapshot('w', 5, 0, 'w@e-5') +
        reset('lost', 'w@e-5,lost@e-0/5') +
        endOfSnapshot('lost', 5, 0, 'w@e-5,lost@e-5'),
    );
    await pass();
    const [kept, lost] = [f.tide.store('w'), f.tide.store('lost')];
    const states: string[] = [];
    kept.subscribe(({ state }) => states.push(state));
    gateway.last.send(goodbye('revoked', 1_000));
    gateway.last.end();
    await pass(1_000);
    gateway.last.refuse(404, {}, { status: 404, title: 'Not Found', detail: 'there is no watch "lost"', watch: 'lost' });
    await pass();
    gateway.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 0, 'w@e-5', true));
    await pass();
    expect(lost.view).toMatchObject({ state: 'closed', error: { status: 404 } });
    expect(states).toEqual(['in_sync']);
    expect(gateway.last.watches).toEqual(['w']);
  });

  test('with the credential closes all watches', async () => {
    gateway.cookie = { tag: 'alice' };
    f.tide = watch(url, { watches: ['v', 'w'], transport: authenticated() });
    await pass();
    gateway.last.accept(hello(['v', 'w']) + goodbye('revoked', 1_000)).end();
    gateway.cookie = undefined;
    await pass(600_000);
    expect(gateway.streams).toHaveLength(1);
    for (const name of ['v', 'w']) expect(f.tide.store(name).view).toMatchObject({ state: 'closed', error: { status: 401 } });
  });
});

describe('a stream is renewed', () => {
  beforeEach(() => {
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 600_000 };
    gateway.tokens.two = { tag: 'alice', expires: Date.now() + 1_200_000 };
    gateway.open.add('s');
  });

  test('before its token ends, and nothing else happens', async () => {
    const { getToken, hints } = tokens('one', 'two');
    const store = await start({ getToken });
    gateway.last.accept(named('s') + rest(1));
    for (let i = 0; i < 53; i++) {
      await pass(10_000);
      gateway.last.send(':\n\n');
    }
    expect(hints).toEqual([false, true]);
    expect(gateway.log).toEqual(['GET session one', 'GET session two', 'PUT streams/s two']);
    for (let i = 0; i < 60; i++) {
      await pass(10_000);
      gateway.last.send(':\n\n');
    }
    expect(gateway.streams).toHaveLength(1);
    expect(store.state).toBe('in_sync');
    expect(hints).toEqual([false, true, true]); // before the end of the second one: there is no third
  });

  test('after a third of what is left, if that is little', async () => {
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 6_000 };
    await start(tokens('one', 'two'));
    gateway.last.accept(named('s') + rest(1));
    await pass(1_900);
    expect(gateway.log).toEqual(['GET session one']);
    await pass(200);
    expect(gateway.log).toEqual(['GET session one', 'GET session two', 'PUT streams/s two']);
  });

  test('unless there is no other token', async () => {
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 40_000 };
    const { getToken, hints } = tokens('one');
    await start({ getToken });
    gateway.last.accept(named('s') + rest(1));
    await pass(21_000);
    expect(hints).toEqual([false, true]);
    expect(gateway.log).toEqual(['GET session one']);
  });

  test('by another replica: not at all, without harm', async () => {
    gateway.open.clear();
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 40_000 };
    const store = await start(tokens('one', 'two'));
    gateway.last.accept(named('s') + rest(1));
    await pass(21_000);
    expect(gateway.log).toEqual(['GET session one', 'GET session two', 'PUT streams/s two']);
    expect(store.state).toBe('in_sync');
    gateway.last.send(goodbye('token_expired', 1_000));
    gateway.last.end();
    await pass(1_000);
    expect(authorization()).toEqual(['Bearer one', 'Bearer two']);
  });

  test('but not with the token of another user, which closes it', async () => {
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 40_000 };
    gateway.tokens.two = { tag: 'bob' };
    const store = await start(tokens('one', 'two'));
    gateway.last.accept(named('s') + rest(1));
    await pass(21_000);
    expect(gateway.log).toEqual(['GET session one', 'GET session two']);
    expect(store.view).toMatchObject({ state: 'closed', reason: 'another user is signed in now: load the page again' });
    expect(gateway.last.signal.aborted).toBe(true);
  });

  test('not over and over, by a page whose clock is ahead', async () => {
    let asked = 0;
    const getToken = () => {
      const token = `token ${++asked}`;
      gateway.tokens[token] = { tag: 'alice', expires: Date.now() + 1_000 }; // of an hour, and the clock is almost as far ahead
      return token;
    };
    const store = await start({ getToken });
    gateway.last.accept(named('s') + rest(1));
    for (let i = 0; i < 60; i++) {
      await pass(1_000);
      gateway.last.send(':\n\n');
    }
    expect(asked).toBeLessThanOrEqual(6);
    expect([gateway.streams.length, store.state]).toEqual([1, 'in_sync']);
  });

  test('not before its time, however far away that is', async () => {
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 2 ** 31 * 3 };
    const { getToken, hints } = tokens('one', 'two');
    await start({ getToken });
    gateway.last.accept(named('s') + rest(1));
    await pass(25_000);
    expect(hints).toEqual([false]);
  });
});

describe('the cookie of a session', () => {
  test('is enough', async () => {
    gateway.cookie = { tag: 'alice' };
    const store = await start();
    expect(authorization()).toEqual([null]);
    gateway.last.accept(snapshot('w', 'hers'));
    await pass();
    expect(store.resources.get('a')!.value).toBe('hers');
    expect(gateway.log).toEqual(['GET session', 'GET session']);
  });

  test('of another user, set while the stream was opened: nothing is shown', async () => {
    gateway.cookie = { tag: 'alice' };
    const store = await start();
    const seen: unknown[] = [];
    store.subscribe(({ resources }) => seen.push(...resources.keys()));
    gateway.cookie = { tag: 'bob' };
    gateway.last.accept(snapshot('w', 'his')).end();
    await pass(600_000);
    expect(seen).toEqual([]);
    expect(store.view).toMatchObject({ state: 'closed', error: { status: 401 } });
    expect(gateway.streams).toHaveLength(1);
  });

  test('of another user than the tag says: no stream is opened', async () => {
    gateway.cookie = { tag: 'bob' };
    const store = await start({ tag: 'alice' });
    expect(gateway.streams).toHaveLength(0);
    expect(store.state).toBe('closed');
  });

  test('of nobody, after logout: what was shown is not replaced', async () => {
    gateway.anonymous = true;
    gateway.cookie = { tag: 'alice' };
    const store = await start();
    gateway.last.accept(snapshot('w', 'hers'));
    await pass();
    gateway.cookie = undefined;
    gateway.last.cut();
    await pass(600_000);
    expect(gateway.streams).toHaveLength(1);
    expect(store.view).toMatchObject({ state: 'closed', reason: 'another user is signed in now: load the page again' });
  });

  test('of somebody, after a login: nobody in particular does not become somebody', async () => {
    gateway.anonymous = true;
    const store = await start();
    gateway.last.accept(snapshot('w', 'public'));
    await pass();
    expect(store.state).toBe('in_sync');
    gateway.cookie = { tag: 'alice' };
    gateway.last.cut();
    await pass(600_000);
    expect(gateway.streams).toHaveLength(1);
    expect(store.view).toMatchObject({ state: 'closed', reason: 'another user is signed in now: load the page again' });
  });

  test('is looked at again before anything is passed on, in its order', async () => {
    gateway.cookie = { tag: 'alice' };
    const store = await start();
    gateway.hold = true;
    gateway.last.accept(snapshot('w', 1) + upsert('w', 'a', 6, 2, 'w@e-6') + goodbye('draining', 5_000)).end();
    await pass(5_000);
    expect([store.state, gateway.streams.length]).toEqual(['connecting', 1]);
    gateway.release();
    await pass();
    expect(store.resources.get('a')!.value).toBe(2);
    await pass(5_000);
    expect(gateway.last.lastEventId).toBe('w@e-6');
  });

  test('is not waited for when the page has closed the connection', async () => {
    gateway.cookie = { tag: 'alice' };
    await start();
    gateway.hold = true;
    gateway.last.accept(snapshot('w'));
    await pass();
    f.tide.close();
    gateway.release();
    await pass();
    expect(f.tide).toBeDefined(); // and no timer is left, which every test checks
  });

  test('that cannot be checked makes the client try again', async () => {
    gateway.cookie = { tag: 'alice' };
    const store = await start();
    gateway.hold = true;
    gateway.last.accept(snapshot('w'));
    await pass(10_000); // the request has its own limit
    gateway.release();
    await pass(1_000);
    expect(gateway.streams).toHaveLength(2);
    gateway.last.accept(snapshot('w'));
    await pass();
    expect(store.state).toBe('in_sync');
  });

  test('that the server does not know closes the store', async () => {
    const store = await start();
    expect(store.view).toMatchObject({ state: 'closed', error: { status: 401 } });
  });
});

describe('an EventSource', () => {
  const say = (value: unknown) => {
    FakeEventSource.last.tell({ type: 'hello', heartbeat_ms: 1_000, stream: 's', watches: [] });
    FakeEventSource.last.tell({ type: 'reset', watch: 'w', reason: 'initial' }, 'w@e-0/1');
    FakeEventSource.last.tell({ type: 'upsert', watch: 'w', key: 'a', revision: '1', value });
    FakeEventSource.last.tell({ type: 'end_of_snapshot', watch: 'w', revision: '1', count: 1 }, 'w@e-1');
  };

  test('gets a session made of the token', async () => {
    gateway.tokens.one = { tag: 'alice' };
    const store = await start({ ...tokens('one'), transport: eventSourceTransport });
    expect(gateway.log).toEqual(['GET session one', 'POST session one']);
    say('hers');
    await pass();
    expect(gateway.log).toEqual(['GET session one', 'POST session one', 'GET session']);
    expect(store.resources.get('a')!.value).toBe('hers');
    expect(FakeEventSource.last.url).not.toContain('one');
  });

  test('renews the session with the stream', async () => {
    gateway.tokens.one = { tag: 'alice', expires: Date.now() + 40_000 };
    gateway.tokens.two = { tag: 'alice' };
    gateway.open.add('s');
    await start({ ...tokens('one', 'two'), transport: eventSourceTransport });
    say(1);
    await pass();
    gateway.log.length = 0;
    await pass(21_000);
    expect(gateway.log).toEqual(['GET session two', 'POST session two', 'PUT streams/s two']);
    expect(gateway.cookie).toEqual({ tag: 'alice' });
  });

  test('or a ticket for its watches', async () => {
    gateway.tokens.one = { tag: 'alice' };
    const store = await start({ ...tokens('one'), transport: eventSourceTransport, tickets: true });
    expect(gateway.log).toEqual(['GET session one', 'POST tickets one']);
    expect(new URL(FakeEventSource.last.url).searchParams.get('ticket')).toBe('for w of alice');
    say(1);
    await pass();
    expect(store.state).toBe('in_sync');
    expect(gateway.cookie).toBeUndefined();
  });

  test('survives an expired cookie until its page has renewed it', async () => {
    const store = await start({ transport: eventSourceTransport });
    FakeEventSource.last.tell({ type: 'goodbye', reason: 'token_expired', retry_ms: 30_000 });
    FakeEventSource.last.onerror!();
    gateway.cookie = { tag: 'alice' };
    await pass(30_000);
    expect(FakeEventSource.all).toHaveLength(2);
    say('hers');
    await pass();
    expect(store.resources.get('a')!.value).toBe('hers');
  });

  test('shows nothing of the next user, whose cookie it was sent with', async () => {
    gateway.cookie = { tag: 'alice' };
    const store = await start({ transport: eventSourceTransport });
    say('hers');
    await pass();
    FakeEventSource.last.onerror!();
    const seen: unknown[] = [];
    store.subscribe(({ resources }) => seen.push(resources.get('a')!.value));
    await pass(500);
    await pass(500);
    gateway.cookie = { tag: 'bob' };
    say('his');
    await pass(600_000);
    expect(new Set(seen)).toEqual(new Set(['hers']));
    expect(store.state).toBe('closed');
  });

  test('needs a token for tickets', () => {
    expect(() => authenticated({ tickets: true })).toThrow('want getToken');
  });
});

test('a hub that is kept for one user refuses the tabs of the next one', async () => {
  gateway.cookie = { tag: 'alice' };
  const hub = new Hub(url, { transport: authenticated({ tag: 'alice' }) });
  const { port1, port2 } = new MessageChannel();
  vi.useRealTimers();
  const done = hub.serve(port1);
  gateway.cookie = { tag: 'bob' };
  const tide = watch(url, { watches: ['w'], transport: sharedTransport(port2) });
  await new Promise<void>((resolve) => {
    tide.store('w').subscribe(({ state }) => {
      if (state === 'closed') resolve();
    });
  });
  expect(tide.store('w').view.error).toMatchObject({ status: 401, message: 'another user is signed in now: load the page again' });
  expect(gateway.streams).toHaveLength(0);
  tide.close();
  done();
  port1.close();
  port2.close();
  vi.useFakeTimers();
});

test('a getToken that hangs is a failure after a while', async () => {
  gateway.tokens.t = { tag: 'alice' };
  const getToken = vi
    .fn<() => string | Promise<string>>()
    .mockReturnValueOnce(new Promise(() => {}))
    .mockReturnValue('t');
  const store = await start({ getToken });
  await pass(10_000);
  expect(store.view.reason).toBe('getToken did not answer for 10 s');
  await pass(1_000);
  expect(gateway.streams).toHaveLength(1);
});

test('requests about digests have the newest token of the streams', async () => {
  gateway.tokens.t1 = { tag: 'ann' };
  const { getToken } = tokens('t1');
  await start({ getToken });
  const { transport } = { transport: authenticated({ getToken }) };
  const { signal } = new AbortController();
  const url = 'http://gateway.test/live/v1/session';
  const read = transport.read(
    { url: 'http://gateway.test/live/v1/events?watch=w', lastEventId: '', headers: {}, credentials: 'omit', signal },
    {} as never,
  );
  read.catch(() => {});
  await pass();
  await transport.ask!({ url, headers: { 'X-Team': 'tide' }, credentials: 'omit', signal });
  expect(gateway.log.at(-1)).toBe('undefined session t1');
  gateway.last.fail();
  await pass();
});

test('a transport that reads by an EventSource cannot ask', () => {
  expect(authenticated({ transport: eventSourceTransport }).ask).toBeUndefined();
});
