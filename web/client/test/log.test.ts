import { expect, test, vi } from 'vitest';
import { authenticated } from '../src/auth.js';
import { type LogEvent, logged } from '../src/log.js';
import type { Transport } from '../src/transport.js';
import { following } from './following.js';
import { Gateway } from './gateway.js';
import { goodbye, hello, pass, snapshot, upsert, wire } from './server.js';

const f = following();

test('a logger is told what happens to the streams', async () => {
  const log: LogEvent[] = [];
  await f.start({ transport: logged((event) => void log.push(event)) });
  const url = `${f.server.last.url.href}&digest=1&resume=digest`;
  f.server.last.fail();
  await pass(2_000);
  f.server.last.refuse(503, { 'Retry-After': '3' });
  await pass(3_000);
  await pass(7);
  const text = snapshot('w').replace(hello(['w']), wire({ type: 'hello', heartbeat_ms: 15_000, instance: 'i1', watches: [] } as never));
  f.server.last.accept(text + upsert('w', 'b', 6, { type: 'goodbye' }, 'w@e-6'));
  await pass(5_000);
  f.server.last.send(goodbye('draining', 200));
  f.server.last.end();
  await pass(1_000);
  f.tide.close();
  await pass();
  expect(log).toEqual([
    { type: 'connecting', url, position: '' },
    { type: 'lost', reason: 'connection refused', afterMs: 0 },
    { type: 'retry', inMs: 1_000 },
    { type: 'connecting', url, position: '' },
    { type: 'refused', status: 503, reason: 'refused with 503', retryMs: 3_000, afterMs: undefined },
    { type: 'retry', inMs: 3_000 },
    { type: 'connecting', url, position: '' },
    { type: 'connected', afterMs: 7, instance: 'i1' },
    { type: 'reset', watch: 'w', reason: 'initial' },
    { type: 'goodbye', reason: 'draining', retryMs: 200 },
    { type: 'lost', reason: 'the stream ended', afterMs: 5_007 },
    { type: 'retry', inMs: 200 },
    { type: 'connecting', url, position: 'w@e-6' },
    { type: 'ended', reason: 'ended', afterMs: 800 },
  ]);
});

test('it is the transport that it logs in everything else', () => {
  const calls: string[] = [];
  const transport: Transport = {
    hearsHeartbeat: false,
    checkHeaders: () => void calls.push('checkHeaders'),
    hurry: () => void calls.push('hurry'),
    waits: (ms) => void calls.push(`waits ${ms}`),
    read: () => Promise.resolve(),
  };
  const all = logged(() => {}, transport);
  all.checkHeaders?.();
  all.hurry?.();
  all.waits?.(5);
  expect([all.hearsHeartbeat, calls]).toEqual([false, ['checkHeaders', 'hurry', 'waits 5']]);
});

test('a logger that throws changes nothing', async () => {
  const thrown = vi.fn();
  vi.stubGlobal('queueMicrotask', (run: () => void) => {
    try {
      run();
    } catch {
      thrown();
    }
  });
  const log = () => {
    throw new Error('a mistake of the page');
  };
  const store = await f.start({ transport: logged(log) });
  f.server.last.fail();
  await pass(2_000);
  f.server.last.accept(snapshot('w'));
  await pass();
  expect([store.state, f.server.exchanges.length, thrown.mock.calls.length]).toEqual(['in_sync', 2, 6]);
});

test('a receiver is the instance of a class as well: what is inside of authenticated connects', async () => {
  const gateway = new Gateway();
  gateway.tokens['t'] = { tag: 'anna' };
  const store = await f.start({ transport: authenticated({ getToken: () => 't', transport: logged(() => {}) }) });
  await pass();
  gateway.last.accept(`retry: 5\n${snapshot('w')}`);
  await pass();
  expect(store.state).toBe('in_sync');
});
