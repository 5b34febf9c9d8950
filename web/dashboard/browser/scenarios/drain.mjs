import assert from 'node:assert/strict';
import { FaultProxy } from '../stage/faultproxy.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { snapshotBytes } from '../stage/snapshot.mjs';
import { until } from '../stage/until.mjs';

scenario('a gateway drains: its visitors resume at the next one', async (stage) => {
  const upstream = await shared.upstream();
  const old = await Gateway.start(upstream);
  stage.own({ stop: old.kill });
  const proxy = stage.own(await FaultProxy.start(old.address));
  const snapshot = await snapshotBytes(proxy, 'services');
  const visitor = await stage.visitor();
  visitor.tolerate(/Failed to load resource: net::ERR_/);
  const tab = await visitor.open(`${proxy.origin}/#/watches/services`);
  await tab.consistent({ rows: 1_000 });

  const next = await Gateway.start(upstream);
  stage.own({ stop: next.kill });
  proxy.target = next.address;
  proxy.reset();
  await old.drain();
  await until('the next gateway has the visitor', async () => (await next.watch('services')).subscribers === 1);
  await upstream.put('services', 'a new one', { name: 'from the next gateway' });
  await tab.consistent({ rows: 1_001 });
  await tab.banner.waitFor({ state: 'detached' });
  assert.ok(proxy.toBrowser < snapshot / 4, `resuming took ${proxy.toBrowser} bytes, a snapshot takes ${snapshot}`);
  await upstream.delete('services', 'a new one');
});
