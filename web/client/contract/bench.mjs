// Measures in Chromium what digests cost a page: the first snapshot with and without them, a verification, and a resume by
// digest in which some rows differ. node bench.mjs
import { Site } from '../../dashboard/browser/stage/site.mjs';
import { openChromium } from './browsers.mjs';

const rows = 100_000;
const bytes = 300;
const rounds = 7;
const differing = 70;

const event = (data, id) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n${id ? `id: ${id}\n` : ''}\n`;
const textOf = (i, n = 0) => JSON.stringify({ n, name: `row ${i}`, healthy: i % 7 !== 0, text: 'x'.repeat(bytes - 60) });
const keyOf = (i) => `default/row-${i}`;

const { Digest, hashOf, bucketOf, bucketsOf, hexOf } = await import('../dist/digest.js');

/** A state of the gateway: of some rows, n is another. */
class State {
  digest = new Digest();
  lines = [];
  hashes = [];

  constructor(other) {
    for (let i = 0; i < rows; i++) {
      const text = textOf(i, i % Math.floor(rows / differing) === 0 ? other : 0);
      this.lines.push(`{"type":"upsert","watch":"w","key":"${keyOf(i)}","revision":"${i + 1}","value":${text}}`);
      this.hashes.push(hashOf(text, { key: keyOf(i) }));
      this.digest.add(this.hashes[i]);
    }
  }

  answer(part, query) {
    const buckets = bucketsOf(rows);
    if (part === '') {
      const table = Array.from({ length: buckets }, () => new Digest());
      for (let i = 0; i < rows; i++) table[bucketOf(keyOf(i), buckets)].add(this.hashes[i]);
      const data = new Uint32Array(table.flatMap(({ count, low, high }) => [count, low, high]));
      return { buckets, table: Buffer.from(data.buffer).toString('base64') };
    }
    const all = Array.from({ length: rows }, (_, i) => i);
    if (part === '/keys') {
      const wanted = new Set(query.getAll('bucket').map(Number));
      const keys = all.filter((i) => wanted.has(bucketOf(keyOf(i), buckets)));
      return { keys: keys.map((i) => ({ key: keyOf(i), revision: '1', hash: hexOf(this.hashes[i]) })), next_page_token: '' };
    }
    const wanted = query.getAll('key').map((key) => Number(key.split('-')[1]));
    return { resources: wanted.map((i) => JSON.parse(this.lines[i])), read: wanted.length };
  }
}

const first = new State(0);
const second = new State(1);
const texts = first.lines.map((line) => `event: upsert\ndata: ${line}\n\n`);
const head = event({ type: 'hello', heartbeat_ms: 60_000, watches: [] });
const snapshot = Buffer.from(
  head +
    event({ type: 'reset', watch: 'w', reason: 'initial' }) +
    texts.join('') +
    event({ type: 'end_of_snapshot', watch: 'w', revision: `${rows}`, count: rows, digest: `${first.digest}` }, `w@e-${rows}`),
);
const verify = (state) =>
  event(
    { type: 'end_of_snapshot', watch: 'w', revision: '7', count: rows, resumed: true, verify: true, digest: `${state.digest}` },
    'w@f-7',
  );

let stream;
const site = await Site.start({ '/dist/': new URL('../dist/', import.meta.url).pathname }, (request, response) => {
  const url = new URL(request.url, 'http://site');
  const [, digest, part] = /\/digests\/([^/]*)(.*)$/.exec(url.pathname) ?? [];
  if (digest) {
    const state = [first, second].find((one) => digest === `${one.digest}`);
    return response.setHeader('Content-Type', 'application/json').end(JSON.stringify(state.answer(part, url.searchParams)));
  }
  if (url.pathname !== '/v1/events')
    return response.setHeader('Content-Type', 'text/html').end('<!doctype html><link rel="icon" href="data:,">');
  response.setHeader('Content-Type', 'text/event-stream');
  stream = response;
  response.write(request.headers['last-event-id'] ? head + verify(second) : snapshot);
  return undefined;
});

const ended = [];
const browser = await openChromium({ after: (end) => ended.push(end) });
const page = await browser.newPage();
await page.goto(site.origin);
await page.evaluate(async (line) => {
  globalThis.client = await import('/dist/index.js');
  const { hashOf } = await import('/dist/digest.js');
  const { startOfValue } = await import('/dist/json_text.js');
  const task = () => {
    let last = performance.now();
    let longest = 0;
    const channel = new MessageChannel();
    let ended = false;
    channel.port1.onmessage = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      if (!ended) setTimeout(() => channel.port2.postMessage(0));
    };
    channel.port2.postMessage(0);
    return () => {
      ended = true;
      return longest;
    };
  };
  globalThis.inSync = (size) =>
    new Promise((resolve) => store.subscribe(({ state, revision }) => state === 'in_sync' && revision === size && resolve()));
  globalThis.load = async (digest, revision) => {
    globalThis.tide?.close();
    globalThis.tide = client.watch('/', { watches: ['w'], digest, hiddenMs: Infinity });
    globalThis.store = tide.store('w');
    const longest = task();
    const from = performance.now();
    await inSync(revision);
    return { ms: performance.now() - from, longest: longest() };
  };
  globalThis.resume = async () => {
    const longest = task();
    const from = performance.now();
    tide.hurry();
    await inSync('7');
    return { ms: performance.now() - from, longest: longest() };
  };
  globalThis.hashing = (times) => {
    const event = JSON.parse(line);
    const bytes = new TextEncoder().encode(line);
    const from = performance.now();
    for (let i = 0; i < times; i++) hashOf('', event, bytes.subarray(startOfValue(line, 'value'), line.length - 1));
    return performance.now() - from;
  };
}, first.lines[7]);

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const on = [];
const off = [];
for (let i = 0; i < rounds; i++) {
  off.push(await page.evaluate((revision) => load('off', revision), `${rows}`));
  on.push(await page.evaluate((revision) => load('on', revision), `${rows}`));
}
const ms = (runs) => median(runs.map((run) => run.ms));
console.log(
  `${rows} rows of ${bytes} B: first snapshot ${ms(off).toFixed(0)} ms without digests, ${ms(on).toFixed(0)} ms with; ` +
    `longest task ${median(off.map((run) => run.longest)).toFixed(0)} and ${median(on.map((run) => run.longest)).toFixed(0)} ms`,
);
const hashing = [];
for (let i = 0; i < rounds; i++) hashing.push(await page.evaluate((n) => hashing(n), rows));
console.log(`hashing alone: ${median(hashing).toFixed(0)} ms, ${((100 * median(hashing)) / ms(on)).toFixed(0)} % of the first snapshot`);
const resumes = [];
for (let i = 0; i < rounds; i++) {
  await page.evaluate((revision) => load('on', revision), `${rows}`);
  stream.destroy();
  await page.waitForFunction(() => store.state !== 'in_sync', { timeout: 20_000 });
  resumes.push(await page.evaluate(() => resume()));
}
console.log(
  `a resume by digest with ${differing} rows that differ: ${ms(resumes).toFixed(0)} ms, longest task ${median(resumes.map((run) => run.longest)).toFixed(0)} ms`,
);
for (const end of ended) await end();
await site.stop();
process.exit(0);
