import assert from 'node:assert/strict';
import { find, settled } from '../stage/filter.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { until } from '../stage/until.mjs';
import { Upstream } from '../stage/upstream.mjs';
import { ownRows, Place, refusals, signIn } from './access/place.mjs';

const rows = 100_000;

scenario(
  'the gateway finds the same by texts and by conditions, among 100,000 rows',
  async (stage) => {
    const upstream = stage.own(await Upstream.start());
    await upstream.fill('services', rows);
    const gateway = await Gateway.start(upstream);
    stage.own({ stop: gateway.kill });
    const visitor = await stage.visitor();
    const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
    await tab.consistent({ rows, limit: 60_000 });
    await tab.page.waitForTimeout(500); // an idle page

    const texts = await find(tab, '"Critical" "EU-west-1a"'); // in the key and the columns
    const text = await find(tab, 'cache-0000');
    const gate = await find(tab, 'state:critical zone:eu-west-1a');
    await tab.page.getByText('by the gateway').waitFor();
    const both = await settled(tab);
    console.log(`# 100,000 rows: texts are found after ${texts.ms} and ${text.ms} ms, conditions hold after ${gate.ms} ms`);
    assert.equal(both, texts.found);

    // Opened at a filter, the page never loads the watch.
    const other = await visitor.open(`${gateway.origin}/#/watches/services?filter=state:critical+zone:eu-west-1a`);
    await other.page.getByText('by the gateway').waitFor();
    assert.equal(await settled(other), texts.found);
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

scenario('keys are found by their prefix, and by their name', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
  const { page } = tab;
  await tab.consistent({ rows: 1_000 });
  await page.getByRole('button', { name: 'Keys' }).click();
  const branch = page.getByRole('treeitem').filter({ hasText: 'payments/' });
  assert.match(await branch.innerText(), /125/);
  await branch.click();
  await until('only keys with the prefix are shown', async () => {
    const keys = await tab.rows.evaluateAll((all) => all.map((row) => row.dataset.key));
    return keys.length > 0 && keys.every((key) => key.startsWith('payments/'));
  });

  await page.getByRole('button', { name: 'Views' }).click();
  await page.getByRole('textbox', { name: 'Name of the view' }).fill('payments');
  await page.getByRole('button', { name: 'Save this view' }).click();
  await page.keyboard.press('Escape');
  await page.getByTitle('Show all keys').click();
  await tab.row('billing/api-000006').waitFor();
  await page.getByRole('button', { name: 'Views' }).click();
  await page.getByRole('link', { name: 'payments' }).click();
  await tab.row('billing/api-000006').waitFor({ state: 'detached' });

  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').fill('search/api-000002');
  await page.getByRole('option', { name: 'search/api-000002' }).waitFor();
  await page.keyboard.press('Enter');
  await tab.detail.getByRole('heading', { name: 'search/api-000002' }).waitFor();
});

scenario('a theme and a density are chosen, and remembered', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor({ colorScheme: 'light' });
  const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
  await tab.consistent({ rows: 1_000 });
  const look = (tab) =>
    tab.page.evaluate(() => [getComputedStyle(document.body).backgroundColor, document.querySelector('[role=row][data-key]').offsetHeight]);
  assert.deepEqual(await look(tab), ['rgb(244, 246, 248)', 36]);
  await tab.page.getByRole('button', { name: 'Display' }).click();
  await tab.page.getByRole('radio', { name: 'Dark' }).check();
  await tab.page.getByRole('radio', { name: 'Compact' }).check();
  assert.deepEqual(await look(tab), ['rgb(14, 20, 25)', 28]);
  const other = await visitor.open(`${gateway.origin}/#/watches/services`);
  await other.consistent({ rows: 1_000 });
  assert.deepEqual(await look(other), ['rgb(14, 20, 25)', 28]);
});

scenario('what the rules forbid is said before typing', async (stage) => {
  const notes = [
    { role: 'admin', read: 'true', write: 'true' },
    { role: 'user', read: 'true', write: 'old.by == principal.name' },
  ];
  const place = await Place.open(stage, { allow: { ...ownRows, notes } });
  await place.gateways[0].put('notes', 'hers', { by: 'alice' });
  await place.gateways[0].put('notes', 'his', { by: 'bob' });
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const tab = await visitor.open(`${place.origin}/#/watches/notes?key=his`);
  await signIn(tab.page, place.guard.token('alice'));
  await tab.detail.getByText('do not let you change or delete this resource').waitFor();
  assert.ok(await tab.detail.getByRole('button', { name: 'Edit' }).isDisabled());
  await tab.row('hers').click();
  await tab.detail.getByText('do not let you delete this resource').waitFor();
  assert.ok(await tab.detail.getByRole('button', { name: 'Edit' }).isEnabled());
});

async function listed(gateway, filter) {
  const response = await fetch(
    `${gateway.origin}/v1/watches/services/events?until=end_of_snapshot&format=ndjson&${new URLSearchParams({ filter })}`,
  );
  const end = (await response.text()).split('\n').find((line) => line.includes('"end_of_snapshot"'));
  return JSON.parse(end).count;
}
