import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('operators: their pages are only on their listener, if the other one is public', async (stage) => {
  const gateway = await Gateway.start(await shared.upstream(), { hosts: ['app.example.com'] });
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  visitor.tolerate(/status of 404 .*\/v1\/subscribers/);
  const tab = await visitor.open(`${gateway.origin}/#/subscribers`);
  await tab.page.getByText('This address does not serve the list of subscribers').waitFor();

  const operator = await stage.visitor();
  const other = await operator.open(`${gateway.operations}/#/subscribers`);
  await other.page.getByText('Disconnects since start').waitFor();

  for (const [origin, status] of [
    [gateway.origin, 404],
    [gateway.operations, 200],
  ]) {
    assert.equal((await fetch(`${origin}/metrics`)).status, status);
  }
});
