import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { until } from '../stage/until.mjs';
import { beginSession, Place, refusals, signedInAs, signIn } from './access/place.mjs';
import { witness } from './access/witness.mjs';

scenario('a logout and a login as another user in a second tab: no tab ever shows what the other one may see', async (stage) => {
  const place = await Place.open(stage);
  const { origin, guard } = place;
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const mixed = await witness(visitor);

  const first = await visitor.open(`${origin}/#/watches/services`);
  await signIn(first.page, guard.token('alice'));
  await signedInAs(first.page, 'alice');
  await first.row('alice/secret').waitFor();
  const kept = await visitor.open(`${origin}/pages/index.html?by=cookie&kept`);
  const keptRow = (owner) => kept.page.getByText(`${owner}/secret: only ${owner} reads this`, { exact: true });
  await keptRow('alice').waitFor();

  const second = await visitor.open(`${origin}/#/watches/services`);
  await second.row('alice/secret').waitFor();
  await second.page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(second.page, guard.token('bob'));
  await signedInAs(second.page, 'bob');
  await second.row('bob/secret').waitFor();

  await signedInAs(first.page, 'bob');
  await first.row('bob/secret').waitFor();
  await keptRow('bob').waitFor();
  for (const { page } of [first, second, kept]) assert.equal(await page.getByText('alice').count(), 0);

  // Alice finds what the page has kept for her, and nothing of bob's. The stream is held up
  // until she has seen it.
  place.front.choose = ({ url }) => (url.startsWith('/v1/events') ? { origin: 'http://127.0.0.1:1' } : place.gateways[0]);
  visitor.tolerate(/ERR_EMPTY_RESPONSE/);
  await second.page.getByRole('button', { name: 'Sign out' }).click();
  await signIn(second.page, guard.token('alice'));
  await kept.page.getByText('alice/secret: only alice reads this (stored)').waitFor();
  place.front.choose = () => place.gateways[0];
  await keptRow('alice').waitFor();
  await signedInAs(first.page, 'alice');
  await first.row('alice/secret').waitFor();
  assert.deepEqual(mixed, []);
});

scenario('a login as another user without a logout: the tabs follow, and never show both', async (stage) => {
  const { origin, guard } = await Place.open(stage);
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const mixed = await witness(visitor);
  const login = await visitor.open(`${origin}/pages/empty.html`);
  const begin = (name) => beginSession(login.page, guard.token(name));
  await begin('alice');
  const tabs = [await visitor.open(`${origin}/#/watches/services`), await visitor.open(`${origin}/#/`)];
  for (const { page } of tabs) await signedInAs(page, 'alice');
  await tabs[0].row('alice/secret').waitFor();
  for (const [next, other] of [
    ['bob', 'alice'],
    ['alice', 'bob'],
  ]) {
    await begin(next);
    for (const { page } of tabs) await signedInAs(page, next);
    await tabs[0].row(`${next}/secret`).waitFor();
    await until(`${other} is gone`, async () => (await tabs[0].row(`${other}/secret`).count()) === 0);
  }
  assert.deepEqual(mixed, []);
});

scenario('a user goes back to a page of the one before, which the browser has kept: nothing of it is shown', async (stage) => {
  const { origin, guard } = await Place.open(stage);
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const shown = [];
  await visitor.context.exposeFunction('reportShown', (kept, text) => shown.push({ kept, text }));
  await visitor.context.addInitScript(() => {
    addEventListener('pageshow', ({ persisted }) => globalThis.reportShown(persisted, document.body.textContent));
  });
  const tab = await visitor.open(`${origin}/#/watches/services`);
  await signIn(tab.page, guard.token('alice'));
  await tab.row('alice/secret').waitFor();
  await tab.page.goto(`${origin}/pages/empty.html`);
  await beginSession(tab.page, guard.token('bob'));
  await tab.page.goBack({ waitUntil: 'commit' });
  await signedInAs(tab.page, 'bob');
  await tab.row('bob/secret').waitFor();
  const kept = shown.filter(({ kept }) => kept);
  assert.equal(kept.length, 1, 'the browser has kept the page');
  assert.doesNotMatch(kept[0].text, /alice/);
});

scenario('the witness of these scenarios notices a tab that shows two users', async (stage) => {
  const { origin } = await Place.open(stage);
  const visitor = await stage.visitor();
  const mixed = await witness(visitor);
  const { page } = await visitor.open(`${origin}/pages/empty.html`);
  for (const owner of ['alice', 'bob']) {
    await page.evaluate((owner) => {
      const row = document.body.appendChild(document.createElement('p'));
      row.textContent = `only ${owner} reads this`;
      row.remove();
    }, owner);
  }
  assert.deepEqual(mixed, []); // nothing of it was ever seen
  for (const owner of ['alice', 'bob'])
    await page.evaluate((owner) => {
      document.body.append(`only ${owner} reads this`);
    }, owner);
  await until('it is noticed', () => mixed.length > 0);
});
