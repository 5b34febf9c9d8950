import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { Upstream } from '../stage/upstream.mjs';

scenario('an upstream goes away and comes back: every page shows it', async (stage) => {
  const upstream = stage.own(await Upstream.start());
  await upstream.fill('services', 100);
  await upstream.fill('nodes', 10);
  const gateway = await Gateway.start(upstream);
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  const table = await visitor.open(`${gateway.origin}/#/watches/services`);
  const overview = await visitor.open(`${gateway.origin}/#/watches`);
  const topology = await visitor.open(`${gateway.origin}/`);
  await table.consistent({ rows: 100 });

  await upstream.leave();
  for (const tab of [table, overview, topology]) {
    await tab.page.bringToFront();
    await tab.banner.and(tab.page.locator('[data-state=stale]')).waitFor();
    assert.match(await tab.banner.innerText(), /services/);
  }

  const late = topology.page.locator('[data-node="watch services"][data-freshness=late]');
  await late.waitFor();
  assert.ok(await topology.page.locator('.edge[data-freshness=late]').count(), 'its edges are late, too');

  await upstream.comeBack();
  for (const tab of [table, overview, topology]) {
    await tab.page.bringToFront();
    await tab.banner.waitFor({ state: 'detached' });
  }
  await late.waitFor({ state: 'detached' });
  await upstream.delete('services', 'billing/api-000006');
  await table.consistent({ rows: 99 });
});
