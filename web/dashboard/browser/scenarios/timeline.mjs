import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { until } from '../stage/until.mjs';
import { Upstream } from '../stage/upstream.mjs';

const recorded = 8; // seconds before the page is opened

scenario('the timeline is full when it opens, and shows an outage of the upstream', async (stage) => {
  const upstream = stage.own(await Upstream.start());
  await upstream.fill('services', 50);
  await upstream.change('services', 40);
  const gateway = await Gateway.start(upstream);
  stage.own({ stop: gateway.kill });
  await samples(gateway, recorded);
  const visitor = await stage.visitor();

  const { page } = await visitor.open(`${gateway.origin}/#/timeline`);
  const row = page.locator('[data-testid=timeline-row][data-watch=services]');
  await row.waitFor();
  const shown = Number(await page.getByTestId('timeline').getAttribute('data-samples'));
  assert.ok(shown >= recorded, `${shown} samples when it opens`);
  assert.equal(await row.locator('.stretch[data-state=missing]').count(), 0);
  await until('more samples', async () => Number(await page.getByTestId('timeline').getAttribute('data-samples')) >= shown + 2);

  await upstream.leave();
  await row.locator('.stretch[data-state=stale]').waitFor();
  await row.locator('.is-state', { hasText: 'stale since' }).waitFor();
  await upstream.comeBack();
  await row.locator('.is-state', { hasText: 'in sync' }).waitFor();
  await page.getByRole('slider', { name: 'Time' }).press('Home');
  await row.locator('.read', { hasText: 'changes/s' }).waitFor();

  await page.getByRole('button', { name: '1 h' }).click();
  await row.locator('.stretch').first().waitFor();
  assert.match(page.url(), /range=1h/);
  await row.getByRole('link', { name: 'services', exact: true }).click();
  await page.getByRole('img', { name: /^Latency from commit to write/ }).waitFor();
  assert.match(page.url(), /timeline\/services\?range=1h/);

  const overview = await visitor.open(`${gateway.origin}/#/watches`);
  const path = overview.page.locator('[data-testid=watch-row][data-watch=services] .sparkline .line').first();
  await path.waitFor();
  const width = await path.evaluate((line) => line.getBBox().width);
  assert.ok(width >= recorded - 2, `${width} of 120 s are drawn at the start`);
});

scenario('a page that is not for operators asks for no figures, and logs nothing', async (stage) => {
  const upstream = stage.own(await Upstream.start());
  const gateway = await Gateway.start(upstream, { hosts: ['app.example.com'] });
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  const { page } = await visitor.open(`${gateway.origin}/#/timeline`);
  await page.getByText('This address does not serve figures over time').waitFor();
  const overview = await visitor.open(`${gateway.origin}/#/watches`);
  await overview.page.locator('[data-testid=watch-row][data-watch=services] .sparkline').waitFor();
});

/** Waits until the gateway has recorded so many seconds. */
const samples = (gateway, n) =>
  until(`${n} seconds are recorded`, async () => (await (await fetch(`${gateway.operations}/v1/series`)).json()).samples >= n);
