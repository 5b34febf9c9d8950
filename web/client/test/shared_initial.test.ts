import { describe, expect, test } from 'vitest';
import { parse } from '../src/digits.js';
import { dialect, type TabMessage } from '../src/port.js';
import type { SharedOptions } from '../src/shared.js';
import { sharedTransport } from '../src/shared.js';
import type { Snapshot } from '../src/snapshot.js';
import { endOfSnapshot, hello, pass, reset, upsert } from './server.js';
import { open, primed, server, sharing, shown, told } from './sharing.js';

sharing();

const initial = (over: Partial<Snapshot> = {}): Snapshot => ({
  resources: [
    { key: 'a', revision: '5', value: 1 },
    { key: '/w==', key_encoding: 'base64', revision: '4', value: { text: 'ü' } },
  ],
  revision: '5',
  position: 'w@e-5',
  since: 999_000,
  ...over,
});

const begin = (over: Partial<Snapshot> = {}, options: SharedOptions = {}) => open([{ watch: 'w', initial: initial(over) }], options);
const values = (tide: ReturnType<typeof open>['tide']) => [...tide.store('w').resources].map(([key, { value }]) => [key, value]);
const rows = [
  ['a', 1],
  ['\udfff/w==', { text: 'ü' }],
];

describe.each([
  ['a worker', {}],
  ['a leader', { worker: undefined as never }],
])('a tab that begins with a snapshot, and shares the connection of %s', (_, options) => {
  test('resumes from its position', async () => {
    const { tide } = begin({}, options);
    await pass(1_000);
    expect([values(tide), tide.store('w').state, tide.store('w').view.since]).toEqual([rows, 'stale', 999_000]);
    expect(server.exchanges.map(({ lastEventId }) => lastEventId)).toEqual(['w@e-5']);
    const calls = told(tide);
    server.last.accept(hello(['w'], 'resume') + upsert('w', 'a', 7, 3) + endOfSnapshot('w', 7, 2, 'w@e-7', true));
    await pass(10);
    expect([values(tide), tide.store('w').view]).toMatchObject([[['a', 3], rows[1]], { state: 'in_sync', revision: '7' }]);
    expect(calls.filter((call) => call.includes('replaced'))).toEqual([]);
  });

  test('keeps its rows until a new snapshot is complete', async () => {
    const { tide } = begin({}, options);
    await pass(1_000);
    const sizes: number[] = [];
    tide.store('w').subscribe(({ resources }) => void sizes.push(resources.size));
    server.last.accept(hello(['w'], 'resume') + reset('w', 'w@f-0/9', 'epoch_changed') + upsert('w', 'b', 9, 4));
    await pass(10);
    server.last.send(endOfSnapshot('w', 9, 1, 'w@f-9'));
    await pass(10);
    expect([values(tide), tide.store('w').state, sizes.includes(0)]).toEqual([[['b', 4]], 'in_sync', false]);
  });

  test('shares it: the next tab needs no request, with or without a snapshot', async () => {
    const first = begin({}, options);
    await pass(1_000);
    const second = open(['w'], options);
    const third = begin({}, options);
    await pass(1_000);
    expect([values(second.tide), values(third.tide)]).toEqual([rows, rows]);
    server.last.accept(hello(['w'], 'resume') + upsert('w', 'a', 7, 3) + endOfSnapshot('w', 7, 2, 'w@e-7', true));
    await pass(10);
    for (const { tide } of [first, second, third]) expect([values(tide), tide.store('w').state]).toEqual([[['a', 3], rows[1]], 'in_sync']);
    expect(server.exchanges).toHaveLength(1);
  });
});

test('a connection that has more does not go back to the snapshot', async () => {
  const { tide } = await primed();
  server.last.send(upsert('w', 'a', 8, 'newest', 'w@e-8'));
  await pass();
  const second = begin();
  await pass(1_000);
  expect([shown(second.tide), shown(tide), server.exchanges.length]).toEqual(['in_sync a=newest', 'in_sync a=newest', 1]);
});

test.each<[string, Partial<Snapshot>, SharedOptions]>([
  ['values that are not what the gateway sent', {}, { parse }],
  ['digits that may be lost', { resources: [{ key: 'a', revision: '5', value: 12345678901234567890 }] }, {}],
  ['digits that are lost', { resources: [{ key: 'a', revision: '5', value: [1e30] }] }, {}],
])('a snapshot with %s is not shared', async (_, over, options) => {
  const { tide } = begin(over, options);
  await pass(1_000);
  expect([server.last.lastEventId, tide.store('w').resources.size > 0]).toEqual([null, true]);
});

test('a snapshot is sent to the next hub only while it is what the tab shows', async () => {
  const sent: TabMessage[] = [];
  const port = Object.assign(new EventTarget(), { postMessage: (message: TabMessage) => void sent.push(message) });
  const hub = (data: object) => port.dispatchEvent(Object.assign(new Event('message'), { data }));
  const receiver = { alive() {}, event() {}, id() {}, retry() {}, flush() {} };
  const snapshots = [{ ...initial(), resources: [], query: 'watch=w' }];
  const stop = new AbortController();
  const request = { url: '/v1/events?watch=w', lastEventId: 'w@e-5', headers: {}, credentials: 'omit', snapshots } as const;
  const read = sharedTransport(port as never).read({ ...request, signal: stop.signal }, receiver);
  hub({ hub: 'one', dialect });
  hub({ hub: 'two', dialect });
  hub({ stream: 2, events: [], id: 'w@hub:1:' });
  hub({ hub: 'three', dialect });
  stop.abort(new Error('enough'));
  await expect(read).rejects.toThrow('enough');
  expect(sent.flatMap((message) => ('query' in message ? [message.snapshots?.length] : []))).toEqual([1, 1, 0]);
});

test.each(['', 'v@e-5', 'w@e-5'])('a snapshot with the position %j never hides what the connection already has', async (position) => {
  await primed();
  server.last.send(upsert('w', 'b', 8, 'newest', 'w@e-8'));
  await pass();
  const resources = [
    { key: 'a', revision: '1', value: 'old' },
    { key: 'gone', revision: '1', value: 'old' },
  ];
  const second = begin({ resources, revision: '1', position });
  await pass(1_000);
  expect([shown(second.tide), second.tide.store('w').view.revision, server.exchanges.length]).toEqual(['in_sync a=1,b=newest', '8', 1]);
});
