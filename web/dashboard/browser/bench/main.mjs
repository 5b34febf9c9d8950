import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromiumProgram } from '../stage/chromium.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { Site } from '../stage/site.mjs';
import { Upstream } from '../stage/upstream.mjs';
import { measureChanges, measureFilters, measureLoad } from './measure.mjs';
import { printTable } from './table.mjs';

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    rate: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '60' },
    runs: { type: 'string', default: '9' },
  },
});
const [rows, perSecond, seconds, runs] = [flags.rows, flags.rate, flags.seconds, flags.runs].map(Number);
const bytes = 300;

const folder = (name) => fileURLToPath(new URL(name, import.meta.url));

const site = await Site.start({ '/peers/': folder('./peers/pages/'), '/': folder('./naive/') });
const upstream = await Upstream.start();
await upstream.fill('services', rows, bytes);
await upstream.fill('nodes', 50);
const gateway = await Gateway.start(upstream, { origins: [site.origin], heartbeat: '15s' });

const query = `?gateway=${encodeURIComponent(gateway.origin)}`;
const subjects = [
  { name: 'the dashboard', url: `${gateway.origin}/#/watches/services?keys=` }, // for the tree of keys it loads all rows, as the others do
  { name: 'TanStack Table', url: `${site.origin}/peers/tanstack.html${query}` },
  { name: 'AG Grid Community', url: `${site.origin}/peers/aggrid.html${query}` },
  { name: 'a naive page', url: `${site.origin}/index.html${query}` },
];

// Interleaved, so that other load on the machine affects all of them.
for (const subject of subjects) subject.loads = [];
for (let run = 0; run < runs; run++) {
  for (const subject of subjects) subject.loads.push(await measureLoad(subject.url, rows));
}
const [dashboard] = subjects; // the others have no filter by field
dashboard.filters = [];
for (let run = 0; run < runs; run++) dashboard.filters.push(await measureFilters(dashboard.url, rows));
for (const subject of subjects) {
  subject.live = await measureChanges(subject.url, rows, { upstream, gateway, perSecond, seconds });
}
for (const server of [gateway, upstream, site]) await (server.kill ?? server.stop).call(server);

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const filter = (kind) => (subject) => (subject.filters ? ms(median(subject.filters.map((run) => run[kind]))) : '–');
const ms = (number) => `${number.toFixed(number < 100 ? 1 : 0)} ms`;
const megabytes = (number) => `${(number / 1e6).toFixed(1)} MB`;

const version = execFileSync(chromiumProgram, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] })
  .toString()
  .trim();
console.log(
  `\n${rows.toLocaleString('en')} rows of ${bytes} bytes; then ${perSecond.toLocaleString('en')} changes per second for ${seconds} s.`,
);
console.log(`${version}, headless; ${cpus().length} cores, ${cpus()[0].model}.\n`);
printTable(
  ['', ...subjects.map(({ name }) => name)],
  [
    [`navigation to consistent table, median of ${runs}`, ({ loads }) => ms(median(loads.map((load) => load.ms)))],
    ['slowest of them', ({ loads }) => ms(Math.max(...loads.map((load) => load.ms)))],
    ['longest frame while loading, median', ({ loads }) => ms(median(loads.map(({ longest }) => longest)))],
    ['filter by two values, to the first painted rows: by the page', filter('page')],
    ['the same through a view, the first time', filter('view')],
    ['frames under changes: median', ({ live }) => ms(live.frames.p50)],
    ['99th percentile', ({ live }) => ms(live.frames.p99)],
    ['longest', ({ live }) => ms(live.frames.longest)],
    ['over 50 ms, of all', ({ live }) => `${live.frames.over50} of ${live.frames.count}`],
    ['farthest behind the gateway', ({ live }) => ms(live.delay)],
    ['CPU of the renderers for each change', ({ live }) => `${live.cpuMicroseconds.toFixed(0)} µs`],
    ['heap of the page before, after GC', ({ live }) => megabytes(live.heapBefore)],
    ['heap of the page at the end, after GC', ({ live }) => megabytes(live.heapAfter)],
    ['memory of the renderers at the end', ({ live }) => megabytes(live.memory)],
  ].map(([title, of]) => [title, ...subjects.map(of)]),
);
