import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('the life of a resource is there when the page opens, is played, and goes on', async (stage) => {
  const gateway = await Gateway.start(await shared.upstream());
  stage.own({ stop: gateway.kill });
  for (const n of [1, 2, 3]) await gateway.put('notes', 'a', { n });
  const visitor = await stage.visitor();
  const { page } = await visitor.open(`${gateway.origin}/#/watches/notes?key=a`);
  const life = page.getByTestId('life');
  await life.getByText('version 3 of 3').waitFor();
  await life.getByText('created').waitFor();
  await life.getByRole('button', { name: 'Older' }).click();
  await page.getByTestId('then').getByText('n: 2').waitFor();
  await gateway.put('notes', 'a', { n: 4 });
  await life.getByText('version 2 of 4').waitFor();
  await page.getByTestId('then').getByText('n: 2').waitFor();
  await life.getByRole('button', { name: 'Play' }).click();
  await life.getByText('version 4 of 4').waitFor();
  assert.match(await page.getByTestId('since').textContent(), /Nothing is missing after revision 0/);
});

scenario('the feed of a watch goes on with it, pauses, and is filtered', async (stage) => {
  const gateway = await Gateway.start(await shared.upstream());
  stage.own({ stop: gateway.kill });
  await gateway.put('notes', 'a', { n: 1 });
  const visitor = await stage.visitor();
  const { page } = await visitor.open(`${gateway.origin}/#/changes/notes`);
  const feed = page.getByTestId('feed');
  await feed.getByText('1 change', { exact: true }).waitFor();
  await gateway.put('notes', 'b', { n: 2 });
  await feed.getByText('2 changes').waitFor();
  await feed.getByRole('button', { name: 'Pause' }).click();
  await gateway.put('notes', 'c', { n: 3 });
  await feed.getByText('2 changes, paused').waitFor();
  await feed.getByRole('button', { name: 'Go on' }).click();
  await feed.getByText('3 changes').waitFor();
  await feed.getByRole('searchbox').fill('n: 2');
  await feed.getByText('1 change', { exact: true }).waitFor();
});

scenario('operators see all replicas, and which of them does not answer', async (stage) => {
  const upstream = await shared.upstream();
  const other = await Gateway.start(upstream);
  stage.own({ stop: other.kill });
  const gateway = await Gateway.start(upstream, { replicas: [other.operations] });
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  const { page } = await visitor.open(`${gateway.origin}/#/replicas`);
  const replicas = page.getByTestId('replicas');
  await replicas.getByText('answers this page').waitFor();
  await replicas.getByText(other.operations).waitFor();
  await replicas.getByRole('row', { name: /services/ }).waitFor();
  await other.kill();
  await replicas.getByText('no answer').waitFor();
});
