import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { openRows, Place, refusals, signedInAs, signIn } from './access/place.mjs';

scenario('a user is revoked while a table is open: the rows vanish, and the page says why', async (stage) => {
  const { origin, guard, upstream } = await Place.open(stage);
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const tab = await visitor.open(`${origin}/#/watches/services`);
  await signIn(tab.page, guard.jwt('alice', 600_000));
  await tab.row('alice/secret').waitFor();
  const { page: own } = await visitor.open(`${origin}/pages/index.html?by=cookie`);
  await own.getByText('alice/secret').waitFor();

  await upstream.put('revocations', guard.subjectKey('alice'), { why: 'she has left' });
  // Long before the token ends. How soon, a test of the gateway says.
  await tab.row('alice/secret').waitFor({ state: 'detached' });
  await own.getByText('closed 403').waitFor();
  await tab.page.getByRole('alert').getByText('The gateway says: the credential has been revoked.').waitFor();

  await signIn(tab.page, guard.jwt('alice', 600_000));
  await tab.page.getByText('Not signed in: the credential has been revoked').waitFor();
  await signIn(tab.page, guard.jwt('bob', 600_000));
  await signedInAs(tab.page, 'bob');
  await tab.row('bob/secret').waitFor();
  assert.equal(await tab.row('alice/secret').count(), 0);
});

scenario(
  'the rules change while two tables are open: who loses one watch keeps the other, and gets the first back with the rules',
  async (stage) => {
    const place = await Place.open(stage, { allow: openRows });
    const {
      origin,
      guard,
      gateways: [gateway],
    } = place;
    const visitor = await stage.visitor();
    visitor.tolerate(...refusals);
    const services = await visitor.open(`${origin}/#/watches/services`);
    await services.page.locator('.user').getByRole('button', { name: 'Sign in' }).click();
    await signIn(services.page, guard.token('alice'));
    await services.row('alice/secret').waitFor();
    const nodes = await visitor.open(`${origin}/#/watches/nodes`);
    await nodes.consistent({ rows: 50 });

    await gateway.reload({ nodes: openRows.nodes });
    await services.page.getByText(/^(You may not see|There is no watch) “services”$/).waitFor();
    assert.equal(await services.page.getByText('alice/secret').count(), 0);
    await nodes.consistent({ rows: 50 });
    await nodes.banner.waitFor({ state: 'detached' });
    await signedInAs(nodes.page, 'alice');

    await gateway.reload(openRows);
    await services.row('alice/secret').waitFor();
  },
);
