import { describe, expect, test, vi } from 'vitest';
import { eventSourceTransport } from '../src/event_source.js';
import { Replica } from '../src/replica.js';
import { type Store, snapshot } from '../src/store.js';
import { type WatchOptions, watch } from '../src/watch.js';
import { answering, resumed, State } from './digests.js';
import { FakeEventSource } from './fake_event_source.js';
import { following, url } from './following.js';
import { endOfSnapshot, hello, snapshot as one, pass, remove, reset, status, upsert } from './server.js';

const f = following();

const rows = (n: number) => new State(Object.fromEntries(Array.from({ length: n }, (_, i) => [`key/${i}`, `{"n":${i}}`])));
const shown = (store: Store) => Object.fromEntries([...store.resources].map(([key, { value }]) => [key, JSON.stringify(value)]));

/** Follows w, and gets a state by a snapshot. */
async function follow(state: State, options: WatchOptions = {}): Promise<Store> {
  const store = await f.start(options);
  f.server.stream.accept(hello(['w']) + state.snapshot('w', 5));
  await pass();
  return store;
}

/** The gateway has started again, and has another state, in an order of its own. */
async function restart(state: State, more = ''): Promise<void> {
  f.server.stream.cut();
  await pass(1_000);
  f.server.stream.accept(resumed('w') + state.verify('w', 7, 'w@f-7') + more);
  await pass();
}

test('what is held is verified at the end of a snapshot, and at bookmarks', async () => {
  const onVerify = vi.fn();
  const store = await follow(rows(3), { onVerify });
  expect(f.server.stream.digests).toBe('digest=1&resume=digest');
  expect(store.view).toMatchObject({ state: 'in_sync', verifiedAt: Date.now() });
  await pass(5_000);
  const next = rows(3).with({ 'key/1': undefined, new: '"ä"' });
  f.server.stream.send(next.upsert('w', 'new', 6) + remove('w', 'key/1', 6));
  f.server.stream.send(next.bookmark('w', 6, 'w@e-6'));
  await pass();
  expect([shown(store), store.view.verifiedAt]).toEqual([next.values, Date.now()]);
  expect(onVerify.mock.calls).toEqual([
    [store, { repaired: 0 }],
    [store, { repaired: 0 }],
  ]);
  expect(f.server.exchanges).toHaveLength(1);
});

test('the bytes that arrive are hashed: a value is not encoded again', async () => {
  const state = new State(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key/${i}`, `"${`${i} `.repeat(200)}"`])));
  const encodeInto = vi.spyOn(TextEncoder.prototype, 'encodeInto');
  const store = await follow(state);
  expect(store.view).toMatchObject({ state: 'in_sync', verifiedAt: Date.now() });
  expect(encodeInto).not.toHaveBeenCalled();
  encodeInto.mockRestore();
});

test('what is held is gone through once for a repair, which may take several tasks', async () => {
  const held = vi.spyOn(Replica.prototype, 'held');
  const store = await follow(rows(300));
  const other = rows(300).with({ 'key/7': '8' });
  await restart(other);
  await answering(f.server, other);
  expect(shown(store)).toEqual(other.values);
  expect(held).toHaveBeenCalledOnce();
  held.mockRestore();
});

describe('a gateway that begins another order of revisions', () => {
  test('with the same content: nothing is sent again', async () => {
    const store = await follow(rows(100));
    const states: string[] = [];
    store.subscribe(({ state }) => states.push(state));
    await restart(rows(100));
    expect(f.server.stream.lastEventId).toBe('w@e-5');
    expect([store.state, store.position, store.view.revision]).toEqual(['in_sync', 'w@f-7', '7']);
    expect(store.view.verifiedAt).toBe(Date.now());
    expect(states).toEqual(['in_sync', 'offline', 'in_sync']);
  });

  test('with a little that differs: that is read, and until then the old state is shown, and the old position kept', async () => {
    const onVerify = vi.fn();
    const store = await follow(rows(500), { onVerify, headers: { 'X-Team': 'tide' }, getToken: () => 'secret' });
    const after = rows(500).with({ 'key/3': undefined, 'key/70': '"other"', new: '[1.0]', 'new/ä': 'null' });
    await restart(after);
    expect([store.state, store.view.reason, store.resources.size]).toEqual(['stale', 'catching up', 500]);
    expect(store.position).toBe('w@e-5');
    const asked = await answering(f.server, after);
    expect([store.state, shown(store)]).toEqual(['in_sync', JSON.parse(JSON.stringify(after.values).replace('1.0', '1'))]);
    expect([store.position, store.view.verifiedAt! > 1_000_000]).toEqual(['w@f-7', true]);
    expect(onVerify).toHaveBeenLastCalledWith(store, { repaired: 4 });
    const paths = asked.map(({ url }) => url.pathname.replace(/.*[/]digests[/][^/]*/, ''));
    expect([paths[0], paths[1], paths.at(-1)]).toEqual(['', '/keys', '/resources']);
    expect(asked.at(-1)!.url.searchParams.getAll('key').sort()).toEqual(['key/70', 'new', 'new/ä']);
    for (const { headers, url } of asked) {
      expect([headers.get('X-Team'), headers.get('Authorization')]).toEqual(['tide', 'Bearer secret']);
      expect(url.href).toMatch('http://gateway.test/live/v1/watches/w/digests/');
    }
    f.server.stream.send(after.upsert('w', 'key/1', 8, '7') + after.with({ 'key/1': '7' }).bookmark('w', 8, 'w@f-8'));
    await pass();
    expect(store.view).toMatchObject({ revision: '8', verifiedAt: Date.now() });
  });

  test('the parameters of a view select its state', async () => {
    f.tide = watch(url, { watches: [{ watch: 'w', prefix: 'key/', filter: 'value.n > 1', fields: ['n', 'm'] }] });
    await pass();
    f.server.stream.accept(hello(['w']) + rows(100).snapshot('w', 5));
    await pass();
    await restart(rows(101));
    const asked = await answering(f.server, rows(101));
    expect(asked.length).toBeGreaterThan(2);
    for (const one of asked) expect(one.url.search).toMatch('prefix=key%2F&filter=value.n+%3E+1&fields=n%2Cm');
  });

  test('rows that are not held any more are read', async () => {
    const before = await follow(rows(200));
    const kept = JSON.parse(JSON.stringify(snapshot(before)));
    f.tide.close();
    await pass();
    const resources = kept.resources.filter(({ key }: { key: string }) => key !== 'key/9' && key !== 'key/99');
    const store = await f.start({ watches: [{ watch: 'w', initial: { ...kept, resources } }] });
    expect([f.server.stream.digests, f.server.stream.lastEventId]).toEqual(['digest=1&resume=digest', 'w@e-5']);
    f.server.stream.accept(resumed('w') + rows(200).end('w', 5, 'w@e-5', { resumed: true }));
    await pass();
    await answering(f.server, rows(200));
    expect([store.state, shown(store)]).toEqual(['in_sync', rows(200).values]);
  });

  test('rows whose hashes are unknown cannot be verified: a position that is not resumed costs a snapshot', async () => {
    const initial = { resources: [{ key: 'key/0', revision: '5', value: { n: 0 } }], revision: '5', position: 'w@e-5', since: 0 };
    const store = await f.start({ watches: [{ watch: 'w', initial }] });
    expect(f.server.stream.digests).toBe('digest=1');
    f.server.stream.accept(resumed('w') + rows(2).upsert('w', 'key/1', 6) + rows(2).end('w', 6, 'w@e-6', { resumed: true }));
    await pass();
    expect([store.state, store.view.verifiedAt]).toEqual(['in_sync', undefined]);
    f.server.stream.send(reset('w', 'w@f-0/1') + rows(2).snapshot('w', 7));
    await pass();
    expect([store.state, store.view.verifiedAt]).toEqual(['in_sync', Date.now()]);
    f.server.stream.cut();
    await pass(1_000);
    expect(f.server.stream.digests).toBe('digest=1&resume=digest');
  });

  test('nearly everything differs: a snapshot follows at once', async () => {
    const store = await follow(rows(1_000));
    const other = new State(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`other/${i}`, '1'])));
    await restart(other);
    const asked = await answering(f.server, other);
    expect(asked).toHaveLength(1);
    expect([store.state, store.view.reason, store.resources.size]).toEqual([
      'offline',
      'w could not be verified: all of it differs',
      1_000,
    ]);
    await pass(5_000);
    expect([f.server.stream.lastEventId, f.server.stream.digests]).toEqual([null, 'digest=1&resume=digest']);
    f.server.stream.accept(hello(['w']) + other.snapshot('w', 7));
    await pass();
    expect([store.state, shown(store)]).toEqual(['in_sync', other.values]);
  });
});

describe('while it is found out what differs', () => {
  const after = rows(100).with({ 'key/7': '"other"' });

  test('events wait, and are shown after it', async () => {
    const store = await follow(rows(100));
    const next = after.with({ late: '1' });
    await restart(after, next.upsert('w', 'late', 8) + next.bookmark('w', 8, 'w@f-8') + next.upsert('w', 'later', 9, '2'));
    expect([store.resources.size, store.position]).toEqual([100, 'w@e-5']);
    const seen: unknown[] = [];
    store.subscribe(({ resources, revision }) => seen.push([resources.size, revision]));
    await answering(f.server, after);
    expect(shown(store)).toEqual(next.values);
    expect([store.view.revision, store.position]).toEqual(['8', 'w@f-8']);
    expect(seen).toEqual([
      [100, '5'],
      [101, '8'],
    ]);
    f.server.stream.send(next.with({ later: '2' }).bookmark('w', 9, 'w@f-9'));
    await pass();
    expect([store.resources.size, store.view.verifiedAt]).toEqual([102, Date.now()]);
  });

  test('cut off: it comes back with the old position, and what it held then', async () => {
    const store = await follow(rows(100));
    f.server.stream.cut();
    await pass(1_000);
    const touched = after.with({ 'key/8': '"newer"' });
    f.server.stream.accept(resumed('w') + touched.upsert('w', 'key/8', 7) + touched.verify('w', 7, 'w@f-7'));
    await pass();
    f.server.stream.cut();
    await pass();
    expect([store.state, shown(store)]).toEqual(['offline', rows(100).values]);
    await pass(5_000);
    expect(f.server.stream.lastEventId).toBe('w@e-5');
    f.server.stream.accept(resumed('w') + after.verify('w', 9, 'w@g-9'));
    await pass();
    await answering(f.server, after);
    expect([store.state, store.position, shown(store)]).toEqual(['in_sync', 'w@g-9', after.values]);
  });

  test('other watches go on, with positions of their own', async () => {
    const w = await follow(rows(100));
    const v = f.tide.add('v');
    await pass(60);
    f.server.stream.accept(hello(['w', 'v']) + rows(100).end('w', 5, 'w@e-5', { resumed: true }) + one('v').replaceAll('v@', 'w@e-5,v@'));
    await pass();
    f.server.stream.cut();
    await pass(1_000);
    expect(f.server.stream.lastEventId).toBe('w@e-5,v@e-5');
    f.server.stream.accept(
      resumed('w', 'v') +
        after.verify('w', 7, 'w@f-7,v@e-5') +
        endOfSnapshot('v', 5, 1, 'w@f-7,v@e-5', true) +
        upsert('v', 'b', 6, 1, 'w@f-7,v@e-6'),
    );
    await pass();
    expect([w.state, v.state, v.resources.size]).toEqual(['stale', 'in_sync', 2]);
    f.server.stream.cut();
    await pass(5_000);
    expect(f.server.stream.lastEventId).toBe('v@e-6,w@e-5');
  });

  test.each([
    ['there is no such state', () => f.server.last.refuse(404)],
    ['there is no answer for 20 s', () => pass(20_000)],
    ['the answer is no JSON', () => f.server.last.answer(new Response('<html>'))],
    ['the answer is null', () => f.server.last.answer(new Response('null'))],
    ['the table is no base64', () => f.server.last.answer(new Response('{"buckets":1,"table":"§"}'))],
    ['the table is too short', () => f.server.last.answer(new Response('{"buckets":2,"table":"AAAA"}'))],
  ])('%s: the old position once more, and then none', async (_, answer) => {
    const onError = vi.fn();
    const store = await follow(rows(100), { onError });
    for (const attempt of [1, 2]) {
      if (attempt === 1) await restart(after);
      else f.server.stream.accept(resumed('w') + after.verify('w', 7, 'w@f-7'));
      await pass(250);
      expect(f.server.last.url.pathname).toMatch(/[/]digests[/]/);
      await answer();
      await pass();
      expect([store.state, shown(store), store.position]).toEqual(['offline', rows(100).values, 'w@e-5']);
      expect(onError.mock.lastCall?.[0].message).toMatch(/^w could not be verified: /);
      await pass(10_000);
      expect(f.server.stream.lastEventId).toBe(attempt === 1 ? 'w@e-5' : null);
    }
    f.server.stream.accept(hello(['w']) + after.snapshot('w', 7));
    await pass();
    expect([store.state, store.view.verifiedAt, shown(store)]).toEqual(['in_sync', Date.now(), after.values]);
    await restart(rows(100)); // earlier failures no longer count
    await pass(250);
    f.server.last.refuse(404);
    await pass(10_000);
    expect(f.server.stream.lastEventId).toBe('w@e-7');
  });

  describe.each([
    ['503', () => f.server.last.refuse(503, { 'Retry-After': '2' })],
    ['429', () => f.server.last.refuse(429, { 'Retry-After': '2' })],
    ['502 of a proxy', () => f.server.last.answer(new Response('<html>', { status: 502, headers: { 'Retry-After': '2' } }))],
    ['there is no answer', () => f.server.last.fail()],
    ['the answer is cut off', () => f.server.last.answer(new Response(new ReadableStream({ pull: (c) => c.error(new TypeError('cut')) })))],
  ])('%s', (name, answer) => {
    test('the same is asked again later', async () => {
      const store = await follow(rows(100));
      await restart(after);
      await pass(250);
      const stream = f.server.stream;
      for (let n = 0; n < 2; n++) {
        const asked = f.server.exchanges.length;
        answer();
        await pass();
        expect([store.state, shown(store), stream.open]).toEqual(['stale', rows(100).values, true]);
        if (name.startsWith('5') || name.startsWith('4')) await pass(1_999);
        if (name.startsWith('5') || name.startsWith('4')) expect(f.server.exchanges).toHaveLength(asked);
        await pass(6_000);
        expect(f.server.exchanges).toHaveLength(asked + 1);
      }
      await answering(f.server, after);
      expect([store.state, shown(store), f.server.stream]).toEqual(['in_sync', after.values, stream]);
    });

    test('however long: it comes back with the old position, and asks for no snapshot', async () => {
      const store = await follow(rows(100));
      await restart(after);
      let streams = 1;
      let asked = 0;
      for (let second = 0; second < 600; second++) {
        const { last, stream } = f.server;
        if (!stream.open && !stream.signal.aborted && !stream.answered) {
          expect([stream.lastEventId, stream.digests]).toEqual(['w@e-5', 'digest=1&resume=digest']);
          stream.accept(resumed('w') + after.verify('w', 7, 'w@f-7'));
          streams++;
        } else if (last !== stream && !last.answered && !last.signal.aborted) {
          // After some time the state is gone.
          if (++asked % 4) answer();
          else last.refuse(410);
        }
        await pass(1_000);
        expect([shown(store), store.position]).toEqual([rows(100).values, 'w@e-5']);
      }
      expect(streams).toBeGreaterThan(8);
      expect(streams).toBeLessThan(60);
      for (let second = 0; second < 120 && store.state !== 'in_sync'; second++) {
        if (!f.server.stream.open && !f.server.stream.signal.aborted) f.server.stream.accept(resumed('w') + after.verify('w', 7, 'w@f-7'));
        await answering(f.server, after);
        await pass(1_000);
      }
      expect([store.state, shown(store)]).toEqual(['in_sync', after.values]);
    });
  });

  test('a gateway that wants the client back later than that may take: the next stream does not come before', async () => {
    const store = await follow(rows(100));
    await restart(after);
    await pass(250);
    const stream = f.server.stream;
    f.server.last.refuse(503, { 'Retry-After': '60' });
    await pass(20_000);
    expect([store.state, stream.open]).toEqual(['offline', false]);
    await pass(59_000);
    expect(f.server.stream).toBe(stream);
    await pass(1_000);
    expect(f.server.stream.lastEventId).toBe('w@e-5');
  });

  test('a stream that is cut off while it is found out is no failure', async () => {
    const store = await follow(rows(100));
    await restart(after);
    for (let n = 0; n < 4; n++) {
      f.server.stream.cut();
      await pass(60_000);
      expect([f.server.stream.lastEventId, f.server.stream.digests]).toEqual(['w@e-5', 'digest=1&resume=digest']);
      f.server.stream.accept(resumed('w') + after.verify('w', 7, 'w@f-7'));
      await pass();
    }
    await answering(f.server, after);
    expect([store.state, shown(store)]).toEqual(['in_sync', after.values]);
  });

  test('a state that is gone is no failure for some time, and the client comes back for another one', async () => {
    const store = await follow(rows(100));
    const from: Array<string | null> = [];
    await restart(after);
    for (let attempt = 1; attempt <= 7; attempt++) {
      await pass(250);
      for (let n = 0; n <= 8; n++) {
        expect(store.state).toBe('stale');
        f.server.last.refuse(410);
        await pass(50);
      }
      expect([store.state, shown(store), store.position]).toEqual(['offline', rows(100).values, 'w@e-5']);
      await pass(60_000);
      from.push(f.server.stream.lastEventId);
      if (attempt < 7) f.server.stream.accept(resumed('w') + after.verify('w', 7, 'w@f-7'));
    }
    expect(from).toEqual([...Array(6).fill('w@none-0'), null]);
    f.server.stream.accept(hello(['w']) + after.snapshot('w', 7));
    await pass();
    expect([store.state, shown(store)]).toEqual(['in_sync', after.values]);
  });

  test('a state that another replica has is found there, behind a proxy that takes turns', async () => {
    const store = await follow(rows(100));
    await restart(after);
    await pass(250);
    const { stream } = f.server;
    for (let n = 0; store.state !== 'in_sync' && n < 60; n++) {
      if (n % 3 === 2) await answering(f.server, after);
      else if (!f.server.last.answered) f.server.last.refuse(410);
      await pass(50);
    }
    expect([store.state, shown(store), f.server.stream]).toEqual(['in_sync', after.values, stream]);
  });

  test('a gateway whose digests are always wrong serves the client without digests', async () => {
    const store = await f.start();
    const wrong = rows(3)
      .snapshot('w', 5)
      .replace(/"digest":"3-0/, '"digest":"3-1');
    const asked: Array<string | null> = [];
    for (let second = 0; second < 300 && store.state !== 'in_sync'; second++) {
      const { stream } = f.server;
      if (!stream.open && !stream.signal.aborted) {
        asked.push(stream.digests);
        stream.accept(
          hello(['w']) +
            (stream.digests
              ? wrong
              : rows(3)
                  .snapshot('w', 5)
                  .replace(/,"digest":"[^"]*"/, '')),
        );
      }
      for (const exchange of f.server.exchanges) if (exchange.url.pathname.includes('/digests/')) exchange.refuse(404);
      await pass(1_000);
    }
    expect([store.state, shown(store), store.view.verifiedAt]).toEqual(['in_sync', rows(3).values, undefined]);
    expect(asked).toEqual([...Array(3).fill('digest=1&resume=digest'), '']);
  });
});

test('an older gateway is asked again at once without digests, and the next one with them after some time', async () => {
  const onError = vi.fn();
  const store = await f.start({ onError });
  const refuse = (parameter: string) =>
    f.server.stream.refuse(400, {}, { status: 400, title: 'No', detail: `unknown parameter ${parameter}`, parameter });
  refuse('digest');
  await pass();
  expect([f.server.exchanges.length, f.server.stream.digests]).toEqual([2, '']);
  f.server.stream.accept(one('w'));
  await pass();
  expect(store.state).toBe('in_sync');
  expect(onError).not.toHaveBeenCalled();
  for (let n = 0; n < 3; n++) {
    f.server.stream.cut();
    await pass(30_000);
    expect([f.server.exchanges.length, f.server.stream.digests]).toEqual([3 + n, '']);
    f.server.stream.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
  }
  for (let n = 0; n < 60; n++) {
    f.server.stream.send(': heartbeat\n\n');
    await pass(10_000);
  }
  f.server.stream.cut();
  await pass(1_000);
  expect(f.server.stream.digests).toBe('digest=1&resume=digest'); // the hashes are known
  refuse('resume');
  await pass();
  expect([f.server.stream.digests, f.server.stream.lastEventId]).toEqual(['', 'w@e-5']);
});

test('any other refusal is final', async () => {
  const store = await f.start();
  f.server.stream.refuse(400, {}, { status: 400, title: 'No', detail: 'what', parameter: 'filter' });
  await pass();
  expect([store.state, f.server.exchanges.length]).toEqual(['closed', 1]);
});

test.each([
  ['digest: off', { digest: 'off' } as const],
  ['a transport that cannot ask', { transport: { hearsHeartbeat: true, read: () => new Promise<void>(() => {}) } }],
])('%s: no digests', async (_, options) => {
  const urls: string[] = [];
  const { transport } = options as WatchOptions;
  const read = transport && ((request: { url: string }) => (urls.push(request.url), new Promise<void>(() => {})));
  await f.start({ ...options, ...(read && { transport: { ...transport!, read } }) });
  if (!transport) expect(f.server.stream.digests).toBe('');
  else expect(urls).toEqual(['http://gateway.test/live/v1/events?watch=w']);
});

test('an EventSource has no digests', async () => {
  vi.stubGlobal('EventSource', FakeEventSource);
  await f.start({ transport: eventSourceTransport });
  expect(FakeEventSource.last.url).not.toMatch('digest');
});

test('a digest in a stream that has not asked for it changes nothing', async () => {
  const store = await f.start({ digest: 'off' });
  f.server.stream.accept(
    hello(['w']) +
      rows(3)
        .snapshot('w', 5)
        .replace(/"digest":"3-0/, '"digest":"3-1'),
  );
  await pass();
  expect([store.state, store.view.verifiedAt]).toEqual(['in_sync', undefined]);
});

test('the state is that of the stream after a status, too', async () => {
  const store = await follow(rows(10));
  const after = rows(10).with({ 'key/3': '3' });
  f.server.stream.send(status('w', 'catching_up') + after.verify('w', 9, 'w@f-9') + status('w', 'in_sync', undefined, 'w@f-9'));
  await pass();
  expect([store.state, store.position]).toEqual(['stale', 'w@e-5']);
  await answering(f.server, after);
  expect([store.state, store.position, shown(store)]).toEqual(['in_sync', 'w@f-9', after.values]);
});
