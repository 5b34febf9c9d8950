// The live table of one watch, and the list of all.
//
//   replica.js    applies the events of a stream; knows which states are consistent
//   follower.js   keeps one EventSource open
//   warning.js    says when what is shown may be old
//   table.js      draws resources
//   writing.js    puts and deletes them

import { Follower } from './follower.js';
import { Table } from './table.js';
import { warningOf } from './warning.js';
import { Writing } from './writing.js';

const POLL_MS = 5_000;  // how often the list of watches is read again
const DRAW_MS = 200;    // at most so often; more rarely where drawing takes long

const $ = (id) => document.getElementById(id);

const table = new Table($('columns'), $('rows'));
const writing = new Writing($('write'), $('write-key'), $('write-value'), $('write-delete'), $('write-said'));

let watches = [];       // as the list has them
let listed = false;     // it was read once
let silence = '';       // what reading it failed with, the last time
let follower = null;    // of the watch that is shown
let drawn = 0;          // version of the replica in the table

const known = () => watches.find((w) => w.name === follower?.watch);

// ---- drawing

let drawTimer = 0;
let drawCost = 0;

// Asks for a drawing soon. Many events make one, and drawing never takes more than
// a fifth of the time.
function changed() {
  drawTimer ||= setTimeout(() => {
    const began = performance.now();
    drawTimer = 0;
    drawWarning();
    drawStatus();
    if (follower && drawn !== follower.replica.version) drawTable(true);
    drawCost = performance.now() - began;
  }, Math.max(DRAW_MS, 4 * drawCost));
}

function drawWarning() {
  const { level, text } = warningOf(follower, known(), listed, silence);
  $('banner').hidden = !level;
  if ($('banner').textContent !== text) $('banner').textContent = text;
  document.body.dataset.level = level;
  document.title = `${level === 'bad' ? '⚠ ' : ''}${follower ? `${follower.watch} · ` : ''}Watchtide`;
}

function drawStatus() {
  if (!follower) return;
  const { connected, replica } = follower;
  const told = replica.freshness?.state ?? 'in_sync';
  const state = !connected ? 'not connected' : told === 'in_sync' && replica.loading ? replica.loading : told;
  $('state').textContent = state;
  $('state').dataset.state = connected ? state : 'lost';
  const since = replica.freshness?.since ?? known()?.since;
  $('since').textContent = since ? new Date(since).toLocaleString() : '–';
  $('revision').textContent = replica.revision || '–';
  $('count').textContent = replica.complete ? replica.shown.length.toLocaleString('en') : '–';
}

function drawTable(fresh) {
  if (!follower?.replica.complete) return;
  const { shown, version } = follower.replica;
  const counted = table.draw(shown, $('filter').value.trim().toLowerCase(), fresh);
  drawn = version;
  $('more').textContent = remark(counted, shown.length);
}

function remark({ found, drawn: rows }, all) {
  if (all === 0) return 'This watch is empty.';
  if (rows < found) return `${rows} of ${found.toLocaleString('en')} rows; the filter finds the others.`;
  return found < all ? `${found} of ${all.toLocaleString('en')} rows match.` : '';
}

function drawWatches() {
  const focused = document.activeElement?.closest('#watches a')?.hash;
  $('watches').replaceChildren(...watches.map(watchItem));
  if (focused) [...$('watches').querySelectorAll('a')].find((a) => a.hash === focused)?.focus();
}

function watchItem({ name, state, count }) {
  const small = document.createElement('small');
  small.textContent = state === 'in_sync' ? count.toLocaleString('en') : state;
  small.dataset.state = state;
  const a = Object.assign(document.createElement('a'), { href: `#${encodeURIComponent(name)}` });
  if (name === follower?.watch) a.setAttribute('aria-current', 'page');
  a.append(name, ' ', small);
  const li = document.createElement('li');
  li.append(a);
  return li;
}

// Shows the form, and keys as buttons that fill it, where a watch can be written.
function drawWritable() {
  const writable = Boolean(known()?.writable);
  if ($('write').hidden !== writable) return;
  $('write').hidden = !writable;
  table.onchoose = writable ? (row) => writing.choose(row) : null;
  table.forget();
  drawTable(false);
}

// ---- choosing a watch

function wanted() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1); // a % that somebody wrote by hand
  }
}

// Shows the watch that the URL names, or the one that has most to show.
function choose() {
  const name = wanted() || follower?.watch || watches.toSorted((a, b) => b.count - a.count)[0]?.name;
  if (!name || name === follower?.watch) return;
  follower?.close();
  drawn = 0;
  table.sort = { column: 'key', down: false };
  table.draw([], '', false);
  $('filter').value = '';
  $('more').textContent = '';
  $('name').textContent = name;
  $('raw').href = `v1/watches/${encodeURIComponent(name)}/resources`;
  writing.watch = name;
  $('write').reset();
  follower = new Follower(name, changed);
  drawWritable();
  drawWatches();
  $('watches').querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  changed();
}

let pollTimer = 0;

async function poll() {
  clearTimeout(pollTimer);
  try {
    const response = await fetch('v1/watches', { cache: 'no-store', signal: AbortSignal.timeout(POLL_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    ({ watches } = await response.json());
    listed = true;
    silence = '';
  } catch (error) {
    silence = `The server does not answer (${error.message}).`;
  }
  choose();
  drawWatches();
  drawWritable();
  if (known() && !silence) follower.compare(known().revision);
  changed();
  clearTimeout(pollTimer);
  if (!document.hidden) pollTimer = setTimeout(poll, POLL_MS);
}

// ---- begin

table.onsort = () => drawTable(false);
$('filter').addEventListener('input', () => drawTable(false));
addEventListener('hashchange', choose);
addEventListener('online', poll);
addEventListener('offline', changed);
addEventListener('keydown', (e) => {
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.target.closest?.('input, textarea')) return;
  e.preventDefault();
  $('filter').focus();
});
// A page that comes back, from sleep or from the browser's history, looks at once.
document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
addEventListener('pagehide', () => follower?.close());
addEventListener('pageshow', (e) => { if (e.persisted) follower?.open(); });
setInterval(drawWarning, 1_000); // "12 s ago" grows
poll();
