import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { type Port, serveTabs } from '../src/shared.js';
import { pass } from './server.js';
import { primed, server, sharing, shown, url } from './sharing.js';

sharing();

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** A port to a tab, as a worker gets it. */
class WorkerPort extends EventTarget {
  postMessage(): void {}
}

/** Serves this many page loads, and returns their ports. */
function loads(count: number): Array<WeakRef<WorkerPort>> {
  const worker = new EventTarget();
  vi.stubGlobal('addEventListener', worker.addEventListener.bind(worker));
  serveTabs(url);
  kept.push(worker);
  return Array.from({ length: count }, () => {
    const port = new WorkerPort();
    worker.dispatchEvent(Object.assign(new Event('connect'), { ports: [port as unknown as Port] }));
    return new WeakRef(port);
  });
}

const kept: unknown[] = []; // the worker lives on

test('a worker keeps no tab that is silent', async () => {
  const ports = loads(10);
  await pass(200_000);
  gc();
  expect(ports.filter((port) => port.deref())).toEqual([]);
});

test('a worker keeps no tab whose port is closed', async () => {
  const ports = loads(10);
  for (const port of ports) port.deref()!.dispatchEvent(new Event('close'));
  await pass(1);
  gc();
  expect(ports.filter((port) => port.deref())).toEqual([]);
});

test('a tab tells the hub to hurry', async () => {
  const { tide } = await primed();
  server.last.cut();
  for (let s = 0; s < 120; s++) {
    await pass(1_000);
    if (!server.last.signal.aborted && !server.last.open) server.last.fail();
  }
  server.last.signal.aborted || server.last.fail();
  await pass(1_000);
  const { length } = server.exchanges;
  tide.hurry();
  await pass(1_000);
  expect(server.exchanges).toHaveLength(length + 1);
  for (let i = 0; i < 100; i++) tide.hurry();
  server.last.fail();
  await pass(500);
  expect(server.exchanges).toHaveLength(length + 1);
  expect(shown(tide)).toBe('offline a=1');
});
