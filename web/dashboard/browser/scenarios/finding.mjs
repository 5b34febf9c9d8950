import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { until } from '../stage/until.mjs';
import { Upstream } from '../stage/upstream.mjs';

const rows = 100_000;

// Far above what an idle machine takes, which the scenario prints.
const limitMs = 5_000;

scenario(
  'a filter finds the same in the page and at the gateway, among 100,000 rows',
  async (stage) => {
    const upstream = stage.own(await Upstream.start());
    await upstream.fill('services', rows);
    const gateway = await Gateway.start(upstream);
    stage.own({ stop: gateway.kill });
    const visitor = await stage.visitor();
    const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
    await tab.consistent({ rows, limit: 30_000 });
    await tab.page.waitForTimeout(500); // an idle page

    const text = await find(tab, 'cache-0000');
    const page = await find(tab, '"critical" "eu-west-1a"'); // in the whole of a resource, by the page
    const gate = await find(tab, 'state:critical zone:eu-west-1a');
    await tab.page.getByText('by the gateway').waitFor();
    const both = await settled(tab);
    console.log(`# 100,000 rows: found by the page after ${text.ms} and ${page.ms} ms, the first time with a view after ${gate.ms} ms`);
    assert.equal(both, page.found);
    assert.ok(Math.max(text.ms, page.ms, gate.ms) < limitMs);

    // Opened at a filter, the page never loads the watch.
    const other = await visitor.open(`${gateway.origin}/#/watches/services?filter=state:critical+zone:eu-west-1a`);
    await other.page.getByText('by the gateway').waitFor();
    assert.equal(await settled(other), page.found);
    const viewed = await find(other, 'state:warning cpu>3');
    const count = await settled(other);
    console.log(`# 100,000 rows: a view alone is shown after ${viewed.ms} ms`);
    assert.equal(count, await listed(gateway, 'value.state == "warning" && value.cpu > 3'));
  },
  { timeout: 120_000 },
);

scenario('the filter suggests fields and values, and says where it is wrong', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
  await tab.consistent({ rows: 1_000 });
  const field = tab.page.getByRole('combobox', { name: 'Filter' });
  await field.pressSequentially('sta');
  await tab.page.getByRole('option', { name: 'state' }).waitFor();
  await field.press('ArrowDown');
  await field.press('Enter');
  await field.pressSequentially('crit');
  await tab.page.getByRole('option', { name: 'critical' }).waitFor();
  await field.press('ArrowDown');
  await field.press('Enter');
  assert.equal(await field.inputValue(), 'state:critical ');
  const states = () => [...document.querySelectorAll('[role=row][data-key] .badge[data-severity]')].map(({ textContent }) => textContent);
  await until('only critical services are shown', async () => new Set(await tab.page.evaluate(states)).size === 1);
  assert.deepEqual([...new Set(await tab.page.evaluate(states))], ['critical']);
  await field.fill('state:critical "a');
  await tab.page.getByText('the quote is not closed').waitFor();
});

/** Types a filter, and returns the time until its rows are painted. */
async function find(tab, filter) {
  const field = tab.page.getByRole('combobox', { name: 'Filter' });
  await tab.page.evaluate(watchPaint);
  await field.fill(filter);
  const ms = await tab.page.evaluate((filter) => globalThis.painted(filter), filter);
  return { ms: Math.round(ms), found: await settled(tab) };
}

// Runs in the page: from the input to the frame after the number of matches is in the document.
function watchPaint() {
  const field = document.querySelector('input[role=combobox]');
  const began = new Promise((resolve) => field.addEventListener('input', () => resolve(performance.now()), { once: true }));
  const before = document.querySelector('.row-filter .found').textContent;
  globalThis.painted = async () => {
    const from = await began;
    const note = document.querySelector('.row-filter .found');
    for (;;) {
      await new Promise(requestAnimationFrame);
      if (/^[\d,]+ of/.test(note.textContent) && note.textContent !== before) break;
    }
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    return performance.now() - from;
  };
}

/** Returns the number of matches. */
async function settled(tab) {
  await tab.page.waitForFunction(() => {
    const grid = document.querySelector('[data-testid=resources]');
    return (
      grid.dataset.state === 'in_sync' &&
      grid.getAttribute('aria-busy') === 'false' &&
      /^[\d,]+ of/.test(document.querySelector('.row-filter .found').textContent)
    );
  });
  const note = await tab.page.locator('.row-filter .found').innerText();
  return Number(note.split(' ')[0].replaceAll(',', ''));
}

async function listed(gateway, filter) {
  const response = await fetch(
    `${gateway.origin}/v1/watches/services/events?until=end_of_snapshot&format=ndjson&${new URLSearchParams({ filter })}`,
  );
  const end = (await response.text()).split('\n').find((line) => line.includes('"end_of_snapshot"'));
  return JSON.parse(end).count;
}
