// Measures how long a tab waits for a large snapshot from a hub that already has it,
// from the request to a consistent view, and how long that blocks each side. The hub
// runs in another thread, as in a SharedWorker.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { watch } from '../dist/index.js';
import { Hub, sharedTransport } from '../dist/shared.js';

const rows = 100_000;
const bytes = 300;
const rounds = 7;

if (isMainThread) await measure();
else serve();

function serve() {
  globalThis.fetch = async () => new Response(stream(), { headers: { 'Content-Type': 'text/event-stream' } });
  const hub = new Hub('http://gateway.test');
  const blocked = monitorEventLoopDelay({ resolution: 1 });
  parentPort.on('message', (port) => {
    if (port === 'blocked') {
      parentPort.postMessage(blocked.max / 1e6);
      blocked.reset();
      return;
    }
    blocked.enable();
    hub.serve(port);
  });
}

function stream() {
  const event = (data, id) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n${id ? `id: ${id}\n` : ''}\n`;
  const upsert = (i) => {
    const value = {
      name: `row ${i}`,
      host: `10.0.${(i >> 8) & 255}.${i & 255}`,
      port: 8000 + (i % 1000),
      healthy: i % 7 !== 0,
      labels: { zone: `z${i % 3}`, team: `t${i % 20}` },
      text: '',
    };
    value.text = 'x'.repeat(bytes - JSON.stringify(value).length);
    return event({ type: 'upsert', watch: 'w', key: `default/row-${i}`, revision: String(i + 1), value });
  };
  const hello = event({ type: 'hello', heartbeat_ms: 15_000, watches: [{ watch: 'w', mode: 'snapshot' }] });
  const start = event({ type: 'reset', watch: 'w', reason: 'initial' });
  const end = event({ type: 'end_of_snapshot', watch: 'w', revision: String(rows), count: rows }, `w@e-${rows}`);
  let i = 0;
  return new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(hello + start)),
    pull(controller) {
      if (i > rows) return new Promise(() => {});
      let text = '';
      for (const to = i + 200; i < rows && i < to; ) text += upsert(i++);
      if (i === rows) {
        text += end;
        i++;
      }
      controller.enqueue(new TextEncoder().encode(text));
    },
  });
}

async function measure() {
  const worker = new Worker(new URL(import.meta.url));
  console.log(`from the gateway, through the hub: ${(await tab(worker)).ms.toFixed(0)} ms`);
  const times = [];
  for (let i = 0; i < rounds; i++) times.push(await tab(worker));
  times.sort((a, b) => a.ms - b.ms);
  const { ms, blocked, hub } = times[rounds >> 1];
  console.log(
    `${rows} rows of ${bytes} B from the hub: ${ms.toFixed(0)} ms (median of ${rounds}, ${times[0].ms.toFixed(0)} to ${times.at(-1).ms.toFixed(0)}); longest task of the tab ${blocked.toFixed(0)} ms, of the hub ${hub.toFixed(0)} ms`,
  );
  await worker.terminate();
}

async function tab(worker) {
  await ask(worker); // resets the measurement
  const { port1, port2 } = new MessageChannel();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const from = performance.now();
  worker.postMessage(port1, [port1]);
  const tide = watch('http://gateway.test', { watches: ['w'], transport: sharedTransport(port2) });
  const store = tide.store('w');
  await new Promise((resolve) => store.subscribe(({ state }) => state === 'in_sync' && resolve()));
  const ms = performance.now() - from;
  delay.disable();
  if (store.resources.size !== rows) throw new Error(`there are ${store.resources.size} rows`);
  tide.close();
  port2.close();
  return { ms, blocked: delay.max / 1e6, hub: await ask(worker) };
}

async function ask(worker) {
  const answer = new Promise((resolve) => worker.once('message', resolve));
  worker.postMessage('blocked');
  return answer;
}
