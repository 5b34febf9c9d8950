import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Hub, sharedTransport } from '../src/shared.js';
import { watch, type Watches } from '../src/watch.js';
import { pass, remove, Server, snapshot, status, upsert } from './server.js';

const url = 'http://gateway.test';

let server: Server;
let hub: Hub;
let tabs: Array<{ tide: Watches; gone: () => void; ports: MessageChannel }>;

beforeEach(() => {
  server = new Server();
  hub = new Hub(url);
  tabs = [];
});

afterEach(() => {
  for (const { tide, gone, ports } of tabs) {
    tide.close();
    gone();
    ports.port1.close();
  }
  vi.unstubAllGlobals();
});

function tab(...watches: string[]): Watches {
  const ports = new MessageChannel();
  const gone = hub.serve(ports.port1);
  const tide = watch(url, { watches, transport: sharedTransport(ports.port2) });
  tabs.push({ tide, gone, ports });
  return tide;
}

const shown = (tide: Watches, name = 'w') => `${tide.store(name).state} ${[...tide.store(name).resources].map(([key, { value }]) => `${key}=${value}`)}`;

const soon = (check: () => void) => vi.waitFor(check, { interval: 1 });

async function primed(): Promise<Watches> {
  const tide = tab('w');
  await soon(() => expect(server.exchanges).toHaveLength(1));
  server.last.accept(snapshot('w'));
  await soon(() => expect(shown(tide)).toBe('in_sync a=1'));
  return tide;
}

test('eight tabs are one connection', async () => {
  await primed();
  const others = Array.from({ length: 7 }, () => tab('w'));
  await soon(() => expect(others.map((tide) => shown(tide))).toEqual(Array(7).fill('in_sync a=1')));
  server.last.send(upsert('w', 'a', 6, 2) + upsert('w', 'b', 6, 2, 'w@e-6') + remove('w', 'a', 7, 'w@e-7'));
  await soon(() => expect(tabs.map(({ tide }) => shown(tide))).toEqual(Array(8).fill('in_sync b=2')));
  expect(server.exchanges).toHaveLength(1);
});

test('a transaction stays whole', async () => {
  const tide = await primed();
  const states: string[] = [];
  tide.store('w').subscribe(() => states.push(shown(tide)));
  server.last.send(upsert('w', 'a', 6, 2) + upsert('w', 'b', 6, 2, 'w@e-6'));
  await soon(() => expect(states).toEqual(['in_sync a=1', 'in_sync a=2,b=2']));
});

test('every tab hears that it is stale, and since when', async () => {
  const tide = await primed();
  server.last.send(status('w', 'stale', 'the upstream is lost'));
  await soon(() => expect(tide.store('w').view).toMatchObject({ state: 'stale', reason: 'the upstream is lost' }));
  server.last.send(status('w', 'in_sync', undefined, 'w@e-5'));
  await soon(() => expect(tide.store('w').state).toBe('in_sync'));
});

test('a watch is followed while any tab wants it', async () => {
  const first = await primed();
  const second = tab('w');
  await soon(() => expect(shown(second)).toBe('in_sync a=1'));
  first.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(server.last.signal.aborted).toBe(false);
  tabs[1]!.gone(); // without a word
  await soon(() => expect(server.last.signal.aborted).toBe(true));
});

test('a refusal reaches the tab, and the next one may try again', async () => {
  const tide = tab('w');
  await soon(() => expect(server.exchanges).toHaveLength(1));
  server.last.refuse(401);
  await soon(() => expect(tide.store('w').view.error).toMatchObject({ name: 'RefusedError', status: 401 }));
  tab('w');
  await soon(() => expect(server.exchanges).toHaveLength(2));
});

test('one watch has one prefix, in all tabs', async () => {
  await primed();
  const other = tab();
  const store = other.add({ watch: 'w', prefix: 'x/' });
  await soon(() => expect(store.view).toMatchObject({ state: 'closed', error: { status: 400 } }));
  expect(shown(tabs[0]!.tide)).toBe('in_sync a=1');
});

test('a tab that does not answer is gone', async () => {
  vi.useFakeTimers();
  const port = Object.assign(new EventTarget(), { start() {}, postMessage: vi.fn() });
  const say = (query: string) => port.dispatchEvent(new MessageEvent('message', { data: { stream: 1, query } }));
  hub.serve(port as unknown as MessagePort);
  say('watch=w');
  await pass();
  server.last.accept(snapshot('w'));
  for (let i = 0; i < 20; i++) {
    await pass(15_000);
    server.last.send(':\n\n');
    say('alive');
  }
  expect(server.last.signal.aborted).toBe(false);
  for (let i = 0; i < 6; i++) {
    await pass(15_000);
    if (!server.last.signal.aborted) server.last.send(':\n\n');
  }
  expect(server.last.signal.aborted).toBe(true);
  expect(server.exchanges).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

test('a tab answers the heartbeat', async () => {
  const { port1, port2 } = new MessageChannel();
  const said: string[] = [];
  port1.addEventListener('message', ({ data }) => {
    said.push(data.query);
    if (data.query === 'watch=w') port1.postMessage({ stream: data.stream });
  });
  port1.start();
  const tide = watch(url, { watches: ['w'], transport: sharedTransport(port2) });
  await soon(() => expect(said).toEqual(['watch=w', 'alive']));
  tide.close();
  await soon(() => expect(said).toEqual(['watch=w', 'alive', 'end']));
  port1.close();
});
