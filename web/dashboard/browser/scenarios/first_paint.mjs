import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('first paint: the overview lists every watch with its resources', async (stage) => {
  const gateway = await shared.gateway();
  const tab = await (await stage.visitor()).open(`${gateway.origin}/#/watches`);
  await tab.ready();
  for (const [name, count] of [
    ['services', '1,000'],
    ['nodes', '50'],
    ['notes', '1'],
  ]) {
    const row = tab.page.locator(`[data-testid=watch-row][data-watch=${name}]`);
    await row.getByText(count, { exact: true }).first().waitFor();
  }
  assert.equal(await tab.banner.count(), 0, 'nothing is stale');
  await tab.page.getByRole('link', { name: 'nodes' }).first().click();
  await tab.consistent({ rows: 50 });
});

scenario('first paint: a table shows the resources of the gateway, once it has all of them', async (stage) => {
  const gateway = await shared.gateway();
  const tab = await (await stage.visitor()).open(`${gateway.origin}/#/watches/services`);
  await tab.consistent({ rows: 1_000 });
  const { revision } = await gateway.watch('services');
  assert.equal(await tab.revision(), revision);
  await assertShows(tab, gateway, 'services');
  assert.ok((await tab.consistentAfter()) > 0, 'performance.mark("consistent") is missing');
});

/** Every row that is rendered is a resource of the gateway, with its values. */
async function assertShows(tab, gateway, watch) {
  const { resources } = await (await fetch(`${gateway.origin}/v1/watches/${watch}/resources?page_size=10000`)).json();
  const values = new Map(resources.map(({ key, value }) => [key, value]));
  const rows = await tab.rows.evaluateAll((all) => all.map((row) => ({ key: row.dataset.key, text: row.textContent })));
  assert.ok(rows.length >= 10, `${rows.length} rows are rendered`);
  for (const { key, text } of rows) {
    assert.ok(values.has(key), `there is no ${key}`);
    assert.ok(text.includes(values.get(key).name), `the row of ${key} does not show its name: ${text}`);
  }
}
