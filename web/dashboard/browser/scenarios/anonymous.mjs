import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { openRows, Place, refusals, signedInAs, signIn } from './access/place.mjs';

scenario('without signing in one sees what is for everybody, and can sign in for the rest', async (stage) => {
  const { origin, guard } = await Place.open(stage, { allow: openRows });
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const nodes = await visitor.open(`${origin}/#/watches/nodes`);
  await nodes.consistent({ rows: 50 });
  await nodes.page.locator('.user').getByText('Not signed in').waitFor();

  const services = await visitor.open(`${origin}/#/watches/services`);
  await services.page.getByRole('heading', { name: 'You must sign in to see “services”' }).waitFor();
  await services.page.getByRole('button', { name: 'Sign in' }).first().click();
  await services.page.keyboard.press('Escape');
  assert.equal(await services.page.getByLabel('Token').count(), 0);
  await nodes.consistent({ rows: 50 });
  assert.equal(await nodes.banner.count(), 0, 'the other tab has its data still');

  await services.page.locator('.user').getByRole('button', { name: 'Sign in' }).click();
  await signIn(services.page, guard.token('alice'));
  await services.row('alice/secret').waitFor();
  await signedInAs(nodes.page, 'alice');
  await nodes.consistent({ rows: 50 });
});
