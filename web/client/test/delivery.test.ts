// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { reportDelivery } from '../src/delivery.js';
import type { Event } from '../src/protocol.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { Stores } from '../src/stores.js';

const paintMs = 16;
let stores: Stores, store: Store, end: () => void;
let hidden = false,
  answerMs = 40,
  status = 204;
let reports: Array<{ round_trip_ms: number; painted: Array<{ watch: string; revision: string; ago_ms: number }> }>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  vi.stubGlobal('requestAnimationFrame', (call: () => void) => setTimeout(call, paintMs));
  vi.stubGlobal(
    'MessageChannel',
    class {
      // whose messages arrive in fake time
      port1 = { onmessage: () => {}, close() {} };
      port2 = { postMessage: () => setTimeout(() => this.port1.onmessage(), 1) };
    },
  );
  vi.spyOn(document, 'hidden', 'get').mockImplementation(() => hidden);
  (hidden = false), (answerMs = 40), (status = 204), (reports = []);
  vi.stubGlobal('fetch', async (url: string, { body }: { body: string }) => {
    expect(url).toBe('/gateway/v1/delivery');
    reports.push(JSON.parse(body));
    await new Promise((done) => setTimeout(done, answerMs));
    return { ok: status === 204 };
  });
  stores = new Stores();
  store = stores.add(canonical('w'));
  stores.request();
  stores.open();
  feed({ type: 'reset', watch: 'w', reason: 'initial' }, { type: 'end_of_snapshot', watch: 'w', revision: '1', count: 0 }, 'w@e-1');
  end = reportDelivery('/gateway/', [store], { everyMs: 60_000 });
});

afterEach(() => {
  end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function feed(...events: Array<Event | string>) {
  for (const event of events) typeof event === 'string' ? stores.commit(event) : stores.take(event);
  stores.publish();
}

const change = (revision: number) =>
  feed({ type: 'upsert', watch: 'w', key: 'k', revision: String(revision), value: revision }, `w@e-${revision}`);

/** Waits until a change is awaited, has one, and waits for the answer. */
async function sample(revision: number) {
  await vi.advanceTimersByTimeAsync(90_000);
  change(revision);
  await vi.advanceTimersByTimeAsync(1_000);
}

test('one change per interval is reported, once it is painted', async () => {
  change(2);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(reports).toEqual([]); // nothing is awaited yet
  await vi.advanceTimersByTimeAsync(90_000);
  change(3);
  await vi.advanceTimersByTimeAsync(paintMs);
  expect(reports).toEqual([]); // not painted yet
  await vi.advanceTimersByTimeAsync(100);
  change(4);
  await vi.advanceTimersByTimeAsync(100);
  expect(reports).toEqual([{ round_trip_ms: 0, painted: [{ watch: 'w', revision: '3', ago_ms: 0 }] }]);
});

test('the least round trip is reported', async () => {
  for (const [i, ms] of [40, 300, 25, 90].entries()) {
    answerMs = ms;
    await sample(2 + i);
  }
  expect(reports.map((report) => report.round_trip_ms)).toEqual([0, 40, 40, 25]);
});

test('a clock that is hours wrong, and is set meanwhile, changes nothing', async () => {
  for (const [i, hours] of [0, 5, -7].entries()) {
    vi.setSystemTime(Date.now() + hours * 3_600_000);
    await sample(2 + i);
  }
  expect(reports.map(({ round_trip_ms, painted }) => [round_trip_ms, painted[0]!.ago_ms])).toEqual([
    [0, 0],
    [40, 0],
    [40, 0],
  ]);
});

test('what a resume or a snapshot brings is not reported', async () => {
  await vi.advanceTimersByTimeAsync(90_000);
  stores.disconnect({ state: 'offline', since: Date.now(), reason: 'gone' });
  stores.request();
  stores.open();
  feed(
    { type: 'upsert', watch: 'w', key: 'k', revision: '2', value: 2 },
    { type: 'end_of_snapshot', watch: 'w', revision: '2', count: 1, resumed: true },
    'w@e-2',
  );
  feed({ type: 'reset', watch: 'w', reason: 'expired' }, { type: 'end_of_snapshot', watch: 'w', revision: '3', count: 0 }, 'w@e-3');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(reports).toEqual([]);
  change(4);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(reports.map(({ painted }) => painted[0]!.revision)).toEqual(['4']);
});

test('a hidden page, and one that has ended the reports, reports nothing', async () => {
  hidden = true;
  await sample(2);
  hidden = false;
  await sample(3);
  expect(reports).toHaveLength(1);
  end();
  await sample(4);
  expect(reports).toHaveLength(1);
});

test('a report that fails is not repeated, and its round trip does not count', async () => {
  (status = 429), (answerMs = 1);
  await sample(2);
  (status = 204), (answerMs = 40);
  await sample(3);
  await sample(4);
  expect(reports.map((report) => [report.round_trip_ms, report.painted[0]!.revision])).toEqual([
    [0, '2'],
    [0, '3'],
    [40, '4'],
  ]);
});
