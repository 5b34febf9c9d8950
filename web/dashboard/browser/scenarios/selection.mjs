import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { until } from '../stage/until.mjs';

const isInView = (row) =>
  row.evaluate((row) => {
    const grid = row.closest('[role=grid]').getBoundingClientRect();
    const { top, bottom } = row.getBoundingClientRect();
    return top >= grid.top && bottom <= grid.bottom + 1;
  });

scenario('a link to a resource selects its row and scrolls to it, and the arrow keys move the selection', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  const tab = await visitor.open(`${gateway.origin}/#/watches/services?key=payments/proxy-000505`);
  const { page } = tab;
  const selected = tab.table.locator('[aria-selected=true]');
  await tab.row('payments/proxy-000505').waitFor();
  assert.equal(await selected.getAttribute('data-key'), 'payments/proxy-000505');
  await until('it is in view', () => isInView(selected));

  await tab.detail.waitFor();
  await page.keyboard.press('ArrowDown'); // on the detail, which has the focus
  await until('the next one is selected', async () => (await selected.getAttribute('data-key')) !== 'payments/proxy-000505');
  const next = await selected.getAttribute('data-key');
  await tab.detail.getByRole('heading', { name: next }).waitFor();
  await tab.table.focus();
  for (let i = 0; i < 40; i++) await page.keyboard.press('ArrowUp');
  await until('it is far above', async () => Number(await selected.getAttribute('aria-rowindex')) < 1_000);
  await until('it is in view', () => isInView(selected));
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'grid');
  await tab.detail.getByRole('heading', { name: await selected.getAttribute('data-key') }).waitFor();
});
