import assert from 'node:assert/strict';
import { FaultProxy } from '../stage/faultproxy.mjs';
import { heartbeatMs } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

// On a busy machine the warning is late. Without heartbeats there would be none of the watch, only of the polled list.
const graceMs = 15_000;

scenario('the network falls silent and closes nothing: a warning within two heartbeats', async (stage) => {
  const [gateway, upstream] = [await shared.gateway(), await shared.upstream()];
  const proxy = stage.own(await FaultProxy.start(gateway.address));
  const visitor = await stage.visitor();
  visitor.tolerate(/Failed to load resource: net::ERR_/);
  const tab = await visitor.open(`${proxy.origin}/#/watches/nodes`);
  await tab.consistent({ rows: 50 });

  proxy.stall();
  const began = Date.now();
  await tab.banner.getByText('nodes', { exact: true }).waitFor();
  const took = Date.now() - began;
  assert.ok(took <= 2 * heartbeatMs + graceMs, `the warning came after ${took} ms, with a heartbeat of ${heartbeatMs} ms`);

  await upstream.put('nodes', 'meanwhile', { name: 'written during the silence' });
  proxy.heal();
  await tab.consistent({ rows: 51 });
  await tab.banner.waitFor({ state: 'detached' });
  await upstream.delete('nodes', 'meanwhile');
  await tab.consistent({ rows: 50 });
});
