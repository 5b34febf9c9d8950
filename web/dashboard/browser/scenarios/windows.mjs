import assert from 'node:assert/strict';
import { axe, violations } from '../stage/axe.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { heapBytes } from '../stage/heap.mjs';
import { scenario } from '../stage/scenario.mjs';
import { Upstream } from '../stage/upstream.mjs';

// WATCHTIDE_ROWS=1000000 node --test scenarios/windows.mjs measures a million.
const rows = Number(process.env.WATCHTIDE_ROWS ?? 50_000);

// Times are printed and not checked, since tests run on busy machines.
const maxHeap = 80e6;

// As in ../upstream/row.go.
const teams = ['checkout', 'payments', 'search', 'identity', 'catalogue', 'shipping', 'billing', 'support'];
const kinds = ['api', 'worker', 'cache', 'proxy', 'scheduler', 'exporter'];
const keyOf = (i) => `${teams[i % 8]}/${kinds[Math.trunc(i / 8) % 6]}-${String(i).padStart(6, '0')}`;

scenario(
  'the table of a watch that is too large to be loaded works on windows of it',
  async (stage) => {
    const upstream = stage.own(await Upstream.start());
    await upstream.fill('services', rows);
    const keys = Array.from({ length: rows }, (_, i) => keyOf(i)).sort();
    const gateway = await Gateway.start(upstream, { readyMs: 120_000 });
    stage.own({ stop: gateway.kill });

    const first = await opened(await stage.visitor(), gateway);
    const visitor = await stage.visitor();
    await visitor.context.addInitScript(() => {
      globalThis.firstRow = () => Number(document.querySelector('[data-testid=resources] [data-key]').ariaRowIndex) - 2;
    });
    await visitor.context.addInitScript(axe);
    const again = await opened(visitor, gateway);
    const { page } = again.tab;
    await again.tab.consistent({ rows });
    assert.equal(await page.evaluate(topKey), keys[0]);

    const scrolled = [];
    for (const share of [0.5, 1, 0.123, 0.8, 0.001, 0.37, 0.9999, 0.66, 0]) {
      const { ms, index, key } = await page.evaluate(scrollTo, share);
      assert.equal(key, keys[index], `at ${share} is the row ${index}`);
      scrolled.push(ms);
    }

    const sorted = [];
    for (const column of ['cpu', 'cpu', 'memory_mb', 'cpu']) {
      sorted.push(await page.evaluate(sortBy, column));
      const values = await page.evaluate(firstCells, column);
      const numbers = values.map(Number);
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => (sorted.length === 2 ? b - a : a - b)),
        `sorted by ${column}`,
      );
    }
    const bar = page.getByRole('scrollbar', { name: 'Values of cpu' });
    await bar.waitFor();
    const { x, y, width, height } = await bar.boundingBox();
    await page.mouse.click(x + width / 2, y + height / 2);
    await page.waitForFunction((row) => Math.abs(firstRow() - row) < 0.02 * row, rows / 2);
    const [middle] = await page.evaluate(firstCells, 'cpu');
    assert.match(await bar.getAttribute('aria-valuetext'), new RegExp(`^row [\\d,]+ of ${rows.toLocaleString('en')}, cpu from `));
    assert.deepEqual(await violations(page), []);
    await bar.press('End');
    await page.waitForFunction((row) => firstRow() > row && !document.querySelector('[data-elsewhere]'), 0.99 * rows);
    assert.ok(Number((await page.evaluate(firstCells, 'cpu'))[0]) > Number(middle));
    await bar.press('Home');
    await page.waitForFunction(() => firstRow() === 0 && !document.querySelector('[data-elsewhere]'));
    const [found] = keys.slice(-1);
    await upstream.put('services', found, { cpu: -1, memory_mb: -1, state: 'critical' });
    await isOnTop(page, found);

    const heap = await heapBytes(visitor.context, page);
    const text = (all) => `${all.map((ms) => Math.round(ms)).join(', ')} ms`;
    console.log(`# ${rows} rows: first rows after ${text([first.ms])} where nobody has asked before, then ${text([again.ms])}`);
    const once = sorted.pop();
    console.log(`# sorted by cpu, in reverse, and by memory after ${text(sorted)}, and by cpu again after ${text([once])}`);
    console.log(`# scrolled after ${text(scrolled)}, heap ${Math.round(heap / 1e6)} MB`);
    assert.ok(heap < maxHeap, `the heap holds ${heap} bytes`);

    const tiles = page.getByRole('group', { name: /^Resources by / });
    await tiles.waitFor();
    assert.equal(await tiles.getAttribute('data-total'), String(rows));
    await tiles.getByRole('button').first().click();
    await page.waitForFunction(showsCounted);

    const filter = page.getByRole('combobox', { name: 'Filter' });
    await filter.fill(found.toUpperCase());
    await page.waitForFunction(() => document.querySelector('.row-filter .found').textContent.startsWith('1 of '));
    assert.match(await page.locator('.row-filter .found').textContent(), / · by the gateway$/);
    await isOnTop(page, found);
    await filter.fill('state:critical');
    await isOnTop(page, found);
    await again.tab.table.focus();
    await page.keyboard.press('End');
    await page.waitForFunction(() => document.querySelector('[data-active]') && !document.querySelector('[data-elsewhere]'));
    await page.keyboard.press('Enter');
    await again.tab.detail.getByText('critical').first().waitFor();
    await page.keyboard.press('Home'); // the detail follows the selection
    await page.waitForFunction((key) => document.querySelector('[data-testid=resource-detail]')?.dataset.key === key, found);
  },
  { timeout: 240_000 },
);

const isOnTop = (page, key) =>
  page.waitForFunction((key) => document.querySelector('[data-testid=resources] [data-key]')?.dataset.key === key, key);

/** Opens the table from another page. Returns the time until its first rows are drawn, in ms. */
async function opened(visitor, gateway) {
  const tab = await visitor.open(`${gateway.origin}/#/watches`);
  await tab.page.getByRole('link', { name: 'services' }).first().waitFor();
  const ms = await tab.page.evaluate(async () => {
    const began = performance.now();
    location.hash = '#/watches/services';
    while (!document.querySelector('[data-testid=resources] [data-key]')) await new Promise(requestAnimationFrame);
    return performance.now() - began;
  });
  return { tab, ms };
}

// The following run in the page.

function topKey() {
  return document.querySelector('[data-testid=resources] [data-key]').dataset.key;
}

// As many rows are found as the pressed tile says. Both may still change.
function showsCounted() {
  const [counted] = /[\d,]+$/.exec(document.querySelector('.tiles [aria-pressed=true]')?.textContent ?? '') ?? [];
  return counted !== undefined && document.querySelector('.row-filter .found').textContent.startsWith(`${counted} of `);
}

async function scrollTo(share) {
  const table = document.querySelector('[data-testid=resources]');
  const began = performance.now();
  table.scrollTop = share * (table.scrollHeight - table.clientHeight);
  await new Promise(requestAnimationFrame);
  for (;;) {
    if (table.querySelectorAll('[data-key]').length < 10) throw new Error('there is a hole');
    if (!('elsewhere' in table.dataset)) break;
    await new Promise(requestAnimationFrame);
  }
  const ms = performance.now() - began;
  const row = table.querySelector('[data-key]');
  return { ms, index: Number(row.ariaRowIndex) - 2, key: row.dataset.key };
}

async function sortBy(column) {
  const table = document.querySelector('[data-testid=resources]');
  const began = performance.now();
  table.querySelector(`button[title="Sort by ${column}"]`).click();
  do await new Promise(requestAnimationFrame);
  while (table.ariaBusy === 'true' || 'elsewhere' in table.dataset);
  return performance.now() - began;
}

function firstCells(column) {
  const table = document.querySelector('[data-testid=resources]');
  const at = [...table.querySelectorAll('[role=columnheader]')].findIndex((head) => head.querySelector(`[title="Sort by ${column}"]`));
  return [...table.querySelectorAll('[data-key]')].map((row) => row.children[at].textContent.replace(/[^-\d.]/g, ''));
}

scenario('the topology has tiles of the counts that the configuration declares', async (stage) => {
  const upstream = stage.own(await Upstream.start());
  await upstream.fill('services', 300);
  const gateway = await Gateway.start(upstream, { views: { states: { view_of: 'services', by: ['state'] } } });
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  await visitor.context.addInitScript(axe);
  const { page } = await visitor.open(`${gateway.origin}/`);
  const tiles = page.getByRole('navigation', { name: 'services by state' });
  await tiles.waitFor();
  assert.equal(await tiles.getAttribute('data-total'), '300');
  await upstream.put('services', 'one-more', { state: 'unheard-of' });
  const tile = tiles.getByRole('link', { name: 'unheard-of 1' });
  await tile.waitFor();
  assert.equal(await tiles.getAttribute('data-total'), '301');
  assert.deepEqual(await violations(page), []);
  await tile.click();
  await page.locator('[data-testid=resources] [data-key=one-more]').waitFor();
  assert.equal(await page.locator('[data-testid=resources] [data-key]').count(), 1);
});
