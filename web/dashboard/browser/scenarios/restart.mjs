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
  await upstream.fill('services', 1_000);
});
