import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

// As when the gateway has been updated, or another replica answers: it does not have the file.
const gone = (page, pattern) => page.route(pattern, (route) => route.fulfill({ status: 404, body: 'not found' }));

scenario('a part of the page is gone after an update: the page offers to reload, and goes on otherwise', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  visitor.tolerate(/404|dynamically imported module|preload CSS/);
  const tab = await visitor.open(`${gateway.origin}/#/watches/nodes`);
  await tab.consistent({ rows: 50 });

  await gone(tab.page, /WirePage-/);
  await tab.page.getByRole('link', { name: 'Stream', exact: true }).click();
  const offer = tab.page.getByRole('alert').getByRole('button', { name: 'Reload' });
  await offer.waitFor();

  await tab.page.goBack();
  await tab.consistent({ rows: 50 });
  await tab.page.goForward(); // which tries again
  await offer.waitFor();
  await tab.page.unroute(/WirePage-/);
  await offer.click();
  await tab.page.getByRole('heading', { name: 'Stream' }).waitFor();
});

scenario('the page itself is gone while replicas are updated: it says so, and offers to reload', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  visitor.tolerate(/404|dynamically imported module/);
  await visitor.context.route(/\/assets\/index-/, (route) => route.fulfill({ status: 404, body: 'not found' }));
  const tab = await visitor.open(`${gateway.origin}/#/watches/nodes`);
  const offer = tab.page.getByRole('alert').getByRole('button', { name: 'Reload' });
  await offer.waitFor();
  await visitor.context.unroute(/\/assets\/index-/);
  await offer.click();
  await tab.consistent({ rows: 50 });
});
