import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventSourceTransport } from '../src/event_source.js';
import type { Store } from '../src/store.js';
import { type Watches, watch } from '../src/watch.js';
import { FakeEventSource } from './fake_event_source.js';
import { pass } from './server.js';

let tide: Watches | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  vi.stubGlobal('EventSource', FakeEventSource);
  FakeEventSource.all = [];
});

afterEach(async () => {
  tide?.close();
  tide = undefined;
  await pass();
  expect(FakeEventSource.all.every(({ closed }) => closed)).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

async function follow() {
  tide = watch('/live', { watches: ['w'], transport: eventSourceTransport });
  await pass();
  const source = FakeEventSource.last;
  source.tell({ type: 'hello', heartbeat_ms: 1_000, watches: [{ watch: 'w', mode: 'snapshot' }] });
  source.tell({ type: 'reset', watch: 'w', reason: 'initial' }, 'w@e-0/1');
  source.tell({ type: 'upsert', watch: 'w', key: 'a', revision: '1', value: 1 });
  source.tell({ type: 'end_of_snapshot', watch: 'w', revision: '1', count: 1 }, 'w@e-1');
  return tide.store('w');
}

test('fills the same store', async () => {
  const store = await follow();
  expect(FakeEventSource.last.url).toBe('/live/v1/events?watch=w');
  expect(FakeEventSource.last.init).toEqual({ withCredentials: false });
  expect(store.view).toMatchObject({ state: 'in_sync', revision: '1' });
});

test('reconnects with the newest id in the URL', async () => {
  const store = await follow();
  FakeEventSource.last.onerror!();
  await pass();
  expect(store.state).toBe('offline');
  await pass(1_000);
  expect(FakeEventSource.all).toHaveLength(2);
  expect(FakeEventSource.all[0]!.closed).toBe(true);
  expect(FakeEventSource.last.url).toBe('/live/v1/events?watch=w&last_event_id=w%40e-1');
});

test('obeys goodbye', async () => {
  await follow();
  FakeEventSource.last.tell({ type: 'goodbye', reason: 'draining', retry_ms: 9_000 });
  FakeEventSource.last.onerror!();
  await pass(8_999);
  expect(FakeEventSource.all).toHaveLength(1);
  await pass(1);
  expect(FakeEventSource.all).toHaveLength(2);
});

test('takes silence for the end of a transaction whose id is the same as the last', async () => {
  const store = await follow();
  FakeEventSource.last.tell({ type: 'delete', watch: 'w', key: 'a', revision: '1' }, 'w@e-1');
  expect(store.resources.size).toBe(1);
  await pass(1_000);
  expect(store.resources.size).toBe(0);
});

test('tolerates silence, since heartbeats are hidden, but requires hello', async () => {
  await follow();
  await pass(600_000);
  expect(FakeEventSource.all).toHaveLength(1);
  FakeEventSource.last.onerror!();
  await pass(1_000);
  await pass(30_000);
  expect(FakeEventSource.last.closed).toBe(true);
});

test('cannot send a token', () => {
  expect(() => watch('/', { transport: eventSourceTransport, getToken: () => 't' })).toThrow('an EventSource cannot send a token');
});

describe('a silence in the middle of a transaction', () => {
  const seen = (store: Store) => [...store.resources].map(([key, { value }]) => `${key}=${value}`).join();
  const up = (key: string, revision: string, value: unknown) => ({ type: 'upsert', watch: 'w', key, revision, value });

  test.each([1_000, 60_000])('of %i ms does not show half of it', async (ms) => {
    const store = await follow();
    const states: string[] = [];
    store.subscribe((view) => states.push(`${seen(store)} at ${view.revision}, ${store.position}`));
    FakeEventSource.last.tell(up('a', '2', 0));
    await pass(ms);
    FakeEventSource.last.tell(up('b', '2', 1), 'w@e-2');
    expect(states).toEqual(['a=1 at 1, w@e-1', 'a=0,b=1 at 2, w@e-2']);
  });

  test('does not show half of one that began with what the last id covers', async () => {
    const store = await follow();
    FakeEventSource.last.tell({ type: 'delete', watch: 'w', key: 'a', revision: '1' });
    FakeEventSource.last.tell(up('b', '2', 1));
    await pass(60_000);
    expect(seen(store)).toBe('a=1');
    FakeEventSource.last.tell(up('c', '2', 1), 'w@e-2');
    expect(seen(store)).toBe('b=1,c=1');
  });

  test('after a reset waits for the snapshot, whatever the revisions of another order are', async () => {
    const store = await follow();
    FakeEventSource.last.tell({ type: 'reset', watch: 'w', reason: 'epoch_changed' }, 'w@f-0/1');
    FakeEventSource.last.tell(up('b', '1', 1));
    await pass(60_000);
    FakeEventSource.last.tell({ type: 'end_of_snapshot', watch: 'w', revision: '1', count: 1 }, 'w@f-1');
    expect(seen(store)).toBe('b=1');
  });
});

test.each([['text'], [null], [{ type: 'upsert', watch: 'w', key: 'a' }]])(
  'an event that cannot be read, %j, ends the stream',
  async (data) => {
    const store = await follow();
    const source = FakeEventSource.last;
    source.dispatchEvent(new MessageEvent('upsert', { data: data === 'text' ? data : JSON.stringify(data), lastEventId: 'w@e-2' }));
    await pass();
    expect([source.closed, store.state, store.position]).toEqual([true, 'offline', 'w@e-1']);
  },
);

test('a stream that was redirected to another origin is not shown', async () => {
  const store = await follow();
  const source = FakeEventSource.last;
  vi.spyOn(source, 'url', 'get').mockReturnValue('https://gateway.test/live/v1/events?watch=w');
  const tell = (origin: string, revision: string) => {
    const data = JSON.stringify({ type: 'upsert', watch: 'w', key: 'b', revision, value: origin });
    source.dispatchEvent(new MessageEvent('upsert', { data, lastEventId: `w@e-${revision}`, origin }));
  };
  tell('https://gateway.test', '2');
  expect(store.resources.size).toBe(2);
  tell('https://gateway.test.evil.example', '3');
  await pass();
  expect([source.closed, store.view.revision, store.view.reason]).toEqual([
    true,
    '2',
    '/live/v1/events?watch=w was redirected to https://gateway.test.evil.example',
  ]);
});
