import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

/** Presses Tab until an element that matches the selector has the focus. */
async function tabTo(page, selector, limit = 60) {
  for (let i = 0; i < limit; i++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate((wanted) => document.activeElement?.closest(wanted) !== null, selector)) return;
  }
  throw new Error(`${limit} times Tab did not lead to ${selector}`);
}

scenario('keyboard: from the overview to a watch, and to a resource in it', async (stage) => {
  const gateway = await shared.gateway();
  const tab = await (await stage.visitor()).open(`${gateway.origin}/#/watches`);
  const { page } = tab;
  await page.locator('[data-testid=watch-row][data-watch=services]').waitFor();
  await tabTo(page, '[data-testid=watch-row][data-watch=services] a');
  await page.keyboard.press('Enter');
  await tab.consistent({ rows: 1_000 });

  await tabTo(page, '[data-testid=resources]');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  const detail = page.getByTestId('resource-detail');
  await detail.waitFor();
  assert.match(await detail.getAttribute('data-key'), /\/\w+-\d+$/);
});

scenario('keyboard: through the topology to a watch', async (stage) => {
  const gateway = await shared.gateway();
  const tab = await (await stage.visitor()).open(`${gateway.origin}/`);
  const { page } = tab;
  await page.locator('[data-node="watch services"]').waitFor();
  await tabTo(page, '[data-node="watch services"]');
  assert.ok(await page.locator('.edge[data-near]').count(), 'no edge is marked');
  await page.keyboard.press('Enter');
  await tab.consistent({ rows: 1_000 });
});

scenario('keyboard: the text filter narrows the table', async (stage) => {
  const gateway = await shared.gateway();
  const tab = await (await stage.visitor()).open(`${gateway.origin}/#/watches/services`);
  const { page } = tab;
  await tab.consistent({ rows: 1_000 });
  await tabTo(page, 'input[type=search]');
  await page.keyboard.type('payments/');
  await tab.row('billing/api-000006').waitFor({ state: 'detached' });
  const keys = await tab.rows.evaluateAll((all) => all.map((row) => row.dataset.key));
  assert.ok(keys.length > 5 && keys.every((key) => key.startsWith('payments/')), `rows: ${keys}`);
});
