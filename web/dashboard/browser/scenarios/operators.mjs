import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('operators: their pages are only on their listener, if the other one is public', async (stage) => {
  const gateway = await Gateway.start(await shared.upstream(), { hosts: ['app.example.com'] });
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  const tab = await visitor.open(`${gateway.origin}/#/subscribers`); // a refused request would be a complaint
  await tab.page.getByText('This address does not serve the list of subscribers').waitFor();
  assert.deepEqual(await pagesOf(tab), ['Health', 'Watches', 'Stream']);
  const first = await visitor.open(`${gateway.origin}/`);
  await first.page.locator('[data-testid=watch-row][data-watch=services]').waitFor();

  const operator = await stage.visitor();
  const other = await operator.open(`${gateway.operations}/#/subscribers`);
  await other.page.getByText('Disconnects since start').waitFor();
  assert.deepEqual(await pagesOf(other), ['Topology', 'Health', 'Watches', 'Stream', 'Subscribers', 'Timeline', 'Replicas']);

  for (const [origin, status] of [
    [gateway.origin, 404],
    [gateway.operations, 200],
  ]) {
    assert.equal((await fetch(`${origin}/metrics`)).status, status);
  }
});

const pagesOf = ({ page }) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts();

scenario('operators: they find one subscriber among many, by its group and by a search', async (stage) => {
  const gateway = await Gateway.start(await shared.upstream());
  stage.own({ stop: gateway.kill });
  const followed = new AbortController();
  stage.own({ stop: async () => followed.abort() });
  const follow = (agent) =>
    fetch(`${gateway.origin}/v1/watches/nodes/events`, { headers: { 'User-Agent': agent }, signal: followed.signal });
  const streams = []; // a response that nothing refers to is cancelled
  for (let i = 0; i < 120; i++) streams.push(await follow(i === 60 ? 'needle/1' : 'shop/2'));
  assert.ok(streams.every(({ ok }) => ok));

  const { page } = await (await stage.visitor()).open(`${gateway.origin}/#/subscribers`);
  const connected = page.getByRole('table', { name: 'Connected' });
  await page.getByRole('combobox', { name: 'sorted by' }).selectOption('since');
  await page.waitForFunction(() => {
    const scroller = document.querySelector('section[aria-label="Connected subscribers"]');
    scroller.scrollTop = scroller.scrollHeight; // beyond those that came first, again once the table has its new order
    return document.querySelector('[aria-rowindex="121"]')?.textContent.includes('shop/2');
  });
  await page.getByRole('button', { name: 'needle' }).click();
  await connected.getByText('needle/1').waitFor();
  assert.equal(await connected.getByRole('row').count(), 2);
  await page.getByRole('button', { name: /application: needle/ }).click();
  await page.getByRole('searchbox', { name: 'Search subscribers' }).fill('NEEDLE');
  await page.waitForURL(/search=NEEDLE/);
  await connected.getByText('shop/2').first().waitFor({ state: 'detached' });
  assert.equal(await connected.getByRole('row').count(), 2);
});
