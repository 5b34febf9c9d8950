import assert from 'node:assert/strict';
import { makeCertificate } from '../stage/certificate.mjs';
import { freePort } from '../stage/port.mjs';
import { scenario } from '../stage/scenario.mjs';
import { Place, refusals, signedInAs, signIn } from './access/place.mjs';

scenario('a token becomes a session with the login of the dashboard, which says why another one does not', async (stage) => {
  const { origin, guard } = await Place.open(stage);
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const tab = await visitor.open(`${origin}/#/watches/services`);
  await signIn(tab.page, 'wrong');
  await tab.page.getByRole('alert').getByText('Not signed in: the token is unknown').waitFor();
  await signIn(tab.page, `Bearer ${guard.token('alice')}\n`);
  await signedInAs(tab.page, 'alice');
  await tab.consistent({ rows: 1 });
  await tab.row('alice/secret').waitFor();

  const { name, mechanism } = await tab.page.evaluate(async () => (await fetch('./v1/session')).json());
  assert.deepEqual([name, mechanism], ['alice', 'token']);
  assert.deepEqual(await tab.page.evaluate(keysOfEventSource), ['alice/secret']);
  const [cookie, ...others] = await visitor.context.cookies();
  assert.deepEqual(others, []);
  assert.deepEqual(flags(cookie), { name: 'watchtide-session', httpOnly: true, secure: false, sameSite: 'Strict', path: '/' });
  assert.ok(Math.abs(cookie.expires - Date.now() / 1000 - 13 * 3600) < 60, 'an hour more than the twelve of a session without an end');
  assert.equal(await tab.page.evaluate(() => document.cookie), '', 'no script can read it');

  await tab.page.getByRole('button', { name: 'Sign out' }).click();
  await tab.page.getByLabel('Token').waitFor();
  assert.deepEqual(await visitor.context.cookies(), []);
  assert.equal(await tab.page.getByRole('alert').count(), 0, 'who has signed out knows it');
});

scenario('a token becomes a session with the client on a page of another kind', async (stage) => {
  const { origin, guard, front } = await Place.open(stage);
  const visitor = await stage.visitor();
  await visitor.context.exposeFunction('issueToken', () => guard.jwt('bob', 60_000));
  const { page } = await visitor.open(`${origin}/pages/index.html?by=session`);
  await page.getByText('bob/secret: only bob reads this').waitFor();
  assert.equal(await page.getByRole('listitem').count(), 1);
  const [cookie] = await visitor.context.cookies();
  assert.ok(Math.abs(cookie.expires - Date.now() / 1000 - 3660) < 30, 'an hour more than the minute of the token');
  assert.deepEqual(
    front.asked('POST', '/v1/session').map(({ status }) => status),
    [204],
  );
});

scenario('a session over https: the cookie has the prefix __Host-, and is secure', async (stage) => {
  const [tls, port] = await Promise.all([makeCertificate(), freePort()]);
  const {
    guard,
    gateways: [gateway],
  } = await Place.open(stage, { tls, port });
  const visitor = await stage.visitor({ ignoreHTTPSErrors: true });
  visitor.tolerate(...refusals);
  const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
  await signIn(tab.page, guard.token('alice'));
  await signedInAs(tab.page, 'alice');
  await tab.row('alice/secret').waitFor();
  assert.deepEqual(await tab.page.evaluate(keysOfEventSource), ['alice/secret']);
  const [cookie] = await visitor.context.cookies();
  assert.deepEqual(flags(cookie), { name: '__Host-watchtide-session', httpOnly: true, secure: true, sameSite: 'Strict', path: '/' });
  assert.equal(cookie.domain, '127.0.0.1', 'of this host alone');
  await tab.page.getByRole('button', { name: 'Sign out' }).click();
  await tab.page.getByLabel('Token').waitFor();
  assert.deepEqual(await visitor.context.cookies(), []);
});

const flags = ({ name, httpOnly, secure, sameSite, path }) => ({ name, httpOnly, secure, sameSite, path });

// Runs in the page.
function keysOfEventSource() {
  return new Promise((resolve, reject) => {
    const source = new EventSource('./v1/events?watch=services');
    const keys = [];
    source.addEventListener('upsert', ({ data }) => keys.push(JSON.parse(data).key));
    source.addEventListener('end_of_snapshot', () => {
      source.close();
      resolve(keys);
    });
    source.onerror = () => reject(new Error('the stream was refused'));
  });
}
