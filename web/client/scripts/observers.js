// Measures what a change costs the observers of a store with many rows: a sorted query, an
// index and a subscription to each key, beside sorting everything again.
import { onKey } from '../dist/observe.js';
import { groupBy, query } from '../dist/query.js';
import { canonical } from '../dist/spec.js';
import { Stores } from '../dist/stores.js';

const rows = 100_000;
const perFlush = 10;
const flushes = 500;

let revision = 0;
const compare = (a, b) => a.value.cpu - b.value.cpu;
const busy = ({ value }) => value.cpu > 0.5;
const upsert = (i) => ({
  type: 'upsert',
  watch: 'w',
  key: `pod-${i}`,
  revision: String(++revision),
  value: { node: `node-${i % 500}`, cpu: Math.random() },
});

function fed() {
  const stores = new Stores();
  const store = stores.add(canonical('w'));
  stores.request();
  stores.open();
  const feed = (events) => {
    for (const event of events) stores.take(event);
    stores.commit(`w@e-${revision}`);
    stores.publish();
  };
  feed([{ type: 'reset', watch: 'w', reason: 'initial' }, ...Array.from({ length: rows }, (_, i) => upsert(i))]);
  feed([{ type: 'end_of_snapshot', watch: 'w', revision: String(revision), count: rows }]);
  return { store, feed };
}

function measure(name, follow, times = flushes) {
  const { store, feed } = fed();
  const begin = performance.now();
  follow(store);
  const first = performance.now() - begin;
  const took = [];
  for (let i = 0; i < times; i++) {
    const events = Array.from({ length: perFlush }, () => upsert(Math.floor(Math.random() * rows)));
    const from = performance.now();
    feed(events);
    took.push(performance.now() - from);
  }
  took.sort((a, b) => a - b);
  const micros = (ms) => `${(ms * 1_000).toFixed(0)} µs`;
  console.log(
    `${name}: first ${first.toFixed(0)} ms; ${perFlush} changes ${micros(took[times >> 1])} (p99 ${micros(took[Math.floor(times * 0.99)])})`,
  );
}

console.log(`${rows} rows`);
measure('nothing', () => {});
measure('sorted query', (store) => query(store, { compare }).subscribe(({ rows }) => rows.slice(0, 50)));
measure('filtered and sorted query', (store) => query(store, { filter: busy, compare }).subscribe(({ rows }) => rows.slice(0, 50)));
measure('index of 500 groups', (store) => groupBy(store, ({ value }) => value.node));
measure('a subscription to each of 10,000 keys', (store) => {
  for (let i = 0; i < 10_000; i++) onKey(store, `pod-${i}`, () => {});
});
measure(
  'filtering and sorting everything',
  (store) => store.subscribe(({ resources }) => [...resources.values()].filter(busy).sort(compare)),
  20,
);
