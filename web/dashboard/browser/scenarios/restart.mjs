import assert from 'node:assert/strict';
import { FaultProxy } from '../stage/faultproxy.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { snapshotBytes } from '../stage/snapshot.mjs';

scenario('a gateway is killed and restarted: a warning, then only the changes', async (stage) => {
  const upstream = await shared.upstream();
  const first = await Gateway.start(upstream);
  stage.own({ stop: first.kill });
  const proxy = stage.own(await FaultProxy.start(first.address));
  const snapshot = await snapshotBytes(proxy, 'services');

  const visitor = await stage.visitor();
  visitor.tolerate(/Failed to load resource: net::ERR_/);
  const tab = await visitor.open(`${proxy.origin}/#/watches/services?columns=key,name`);
  await tab.consistent({ rows: 1_000 });

  await tab.page.evaluate(watchRows);

  await first.kill();
  await tab.banner.waitFor();
  assert.equal(await tab.banner.getAttribute('role'), 'alert');
  assert.match(await tab.banner.innerText(), /since/, 'the warning says since when');
  assert.equal(await tab.table.getAttribute('data-count'), '1000', 'the last known state stays readable');

  proxy.reset();
  const second = await Gateway.start(upstream, { port: first.port });
  stage.own({ stop: second.kill });
  await tab.banner.waitFor({ state: 'detached' });
  await upstream.put('services', 'billing/api-000006', { name: 'changed after the restart' });
  await tab.row('billing/api-000006').getByText('changed after the restart').waitFor();
  assert.ok(proxy.toBrowser < snapshot / 4, `resuming took ${proxy.toBrowser} bytes, a snapshot takes ${snapshot}`);
  const { drawn, resources } = await tab.page.evaluate(() => globalThis.fewest);
  assert.equal(resources, 1_000, 'no resource was lost for a while');
  assert.ok(drawn > 5, `in one frame, the table had ${drawn} rows`);
  await upstream.fill('services', 1_000);
});

// Runs in the page: notes how empty the table ever was, in any frame, until the page is closed.
function watchRows() {
  globalThis.fewest = { drawn: Number.POSITIVE_INFINITY, resources: Number.POSITIVE_INFINITY };
  const { fewest } = globalThis;
  const look = () => {
    const table = document.querySelector('[data-testid=resources]');
    fewest.drawn = Math.min(fewest.drawn, table?.querySelectorAll('[role=row][data-key]').length ?? 0);
    fewest.resources = Math.min(fewest.resources, Number(table?.dataset.count ?? 0));
    requestAnimationFrame(look);
  };
  look();
}
