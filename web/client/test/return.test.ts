import { expect, test, vi } from 'vitest';
import { type ClosableTransport, FallbackTransport } from '../src/fallback_transport.js';
import type { Receiver } from '../src/transport.js';
import { pass, snapshot, upsert } from './server.js';
import { open, server, sharing, shown } from './sharing.js';

sharing();

/** Lets time pass while the gateway sends heartbeats and answers new requests. */
async function wait(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5_000) {
    await pass(5_000);
    if (server.last.signal.aborted) continue;
    server.last.open ? server.last.send(':\n\n') : server.last.accept(snapshot('w', 9));
  }
}

test.each(['throws', 'does not load', 'is of another version'])('a tab returns to a worker that %s at first', async (how) => {
  let fail = true;
  const worker = () => {
    if (!fail) return new SharedWorker('tide.worker.js');
    if (how === 'throws') throw new Error('not now');
    const port = Object.assign(new EventTarget(), { start() {}, postMessage() {}, close() {} });
    const broken = Object.assign(new EventTarget(), { port });
    queueMicrotask(() => {
      if (how === 'does not load') broken.dispatchEvent(new Event('error'));
      else port.dispatchEvent(new MessageEvent('message', { data: { hub: 'h', dialect: 1 } }));
    });
    return broken as unknown as SharedWorker;
  };
  const { tide } = open(['w'], { worker });
  await pass();
  server.last.accept(snapshot('w', 1));
  await pass();
  expect(shown(tide)).toBe('in_sync a=1'); // by a leader
  const first = server.last;
  await wait(100_000); // one more failure
  expect(first.signal.aborted).toBe(false);
  fail = false;
  await wait(300_000);
  expect(first.signal.aborted).toBe(true);
  expect(shown(tide)).toBe('in_sync a=9');
  server.last.send(upsert('w', 'a', 6, 10, 'w@e-6'));
  await pass();
  expect(shown(tide)).toBe('in_sync a=10');
  const other = open(['w']); // has the worker
  await pass();
  expect(shown(other.tide)).toBe('in_sync a=10');
});

test('the trials of a transport become rare, are given up, and end with the reads', async () => {
  const closed = vi.fn();
  let fail = () => {};
  const silent: ClosableTransport = {
    hearsHeartbeat: true,
    read: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    close: closed,
  };
  const create = vi.fn((failed: () => void) => {
    fail = failed;
    return { ...silent };
  });
  const both = new FallbackTransport([create, () => ({ ...silent })]);
  const end = new AbortController();
  const receiver: Receiver = { alive() {}, event() {}, id() {}, retry() {}, flush() {} };
  const read = both
    .read({ url: '', lastEventId: '', headers: {}, credentials: 'same-origin', signal: end.signal }, receiver)
    .catch(() => {});
  fail();
  await pass(3_600_000);
  expect(create.mock.calls.length).toBeGreaterThan(5);
  expect(create.mock.calls.length).toBeLessThan(10);
  expect(closed.mock.calls.length).toBeGreaterThanOrEqual(create.mock.calls.length - 1);
  end.abort();
  await read;
  expect(vi.getTimerCount()).toBe(0);
});
