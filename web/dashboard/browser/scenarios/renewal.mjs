import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { until } from '../stage/until.mjs';
import { beginSession, Place, refusals, signedInAs, signIn } from './access/place.mjs';

// Of a token that lasts so long, the client renews a stream after a third, and the gateway
// ends it after a half at the earliest.
const shortMs = 5_000;

/** A page whose first token is short; ends is when. */
async function openShort(stage, { origin, guard }, by) {
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const hints = [];
  let ends = Infinity;
  await visitor.context.exposeFunction('issueToken', (expired) => {
    hints.push(expired);
    ends = Math.min(ends, Date.now() + shortMs);
    return guard.jwt('alice', hints.length > 1 ? 60_000 : shortMs);
  });
  const { page } = await visitor.open(`${origin}/pages/index.html?by=${by}`);
  const shows = (name) => page.getByText(`alice/${name}: only alice reads this`).waitFor();
  await shows('secret');
  return { page, hints, shows, ends };
}

const streams = (front) => front.asked('GET', '/v1/events');
const renewals = (front) => front.asked('PUT', '/v1/streams/').map(({ status }) => status);

/** A page was in sync all the time since its first snapshot, had no other one, and removed no row. */
async function assertUndisturbed(page) {
  const { states, ...others } = await page.evaluate(() => ({
    states: globalThis.states,
    snapshots: globalThis.snapshots,
    removed: globalThis.removed,
  }));
  assert.equal(states.indexOf('in_sync'), states.length - 1, states.join());
  assert.deepEqual(others, { snapshots: 1, removed: 0 });
}

scenario('a token ends while a table is open, and the page renews it in time: nothing happens', async (stage) => {
  const place = await Place.open(stage);
  const pages = await Promise.all(['token', 'session'].map((by) => openShort(stage, place, by)));
  const { front } = place;
  await until('both streams are renewed', () => renewals(front).length === 2);
  await until('the first tokens have ended', () => pages.every(({ ends }) => Date.now() > ends));

  await place.put('alice', 'after');
  for (const { shows } of pages) await shows('after');
  for (const { page, hints } of pages) {
    assert.deepEqual(hints, [false, true]);
    await assertUndisturbed(page);
  }
  assert.deepEqual(renewals(front), [204, 204]);
  assert.equal(streams(front).length, 2, JSON.stringify(front.requests.map(({ method, path, status }) => [method, path, status])));

  // The session that was renewed is still the one that has opened the stream.
  const [, { page }] = pages;
  await page.evaluate(async () => (await import('/client/auth.js')).endSession('/'));
  await page.getByText('closed 403').waitFor(); // long before the token ends
});

scenario('a token ends, and another replica answers the renewal: the stream ends, and resumes there', async (stage) => {
  const place = await Place.open(stage, { replicas: 2 });
  const {
    front,
    gateways: [first, second],
  } = place;
  front.choose = ({ method }) => (method === 'PUT' || renewals(front).length > 0 ? second : first);
  const { page, hints, shows } = await openShort(stage, place, 'token');
  await until('the first replica ends the stream', () => streams(front).length === 2);
  await place.put('alice', 'after');
  await shows('after');
  assert.deepEqual(renewals(front), [404]);
  assert.deepEqual(hints, [false, true, true]);
  assert.equal(streams(front)[0].position, '');
  assert.match(streams(front)[1].position, /^services@/);
  await assertUndisturbed(page);
  assert.deepEqual(
    streams(front).map(({ gateway }) => gateway),
    [first, second],
  );
});

scenario('a token ends, and the page renews its session only later: the streams wait, and resume', async (stage) => {
  const place = await Place.open(stage);
  const { front, guard, origin } = place;
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const { page: other } = await visitor.open(`${origin}/pages/empty.html`);
  const renew = (lastsMs) => beginSession(other, guard.jwt('alice', lastsMs));
  await renew(60_000);
  const [{ page }, native] = [
    await visitor.open(`${origin}/pages/index.html?by=cookie`),
    await visitor.open(`${origin}/pages/native.html`),
  ];
  const both = [page, native.page];
  for (const page of both) await page.getByText('alice/secret: only alice reads this').waitFor();

  await renew(1_000);
  front.cut(); // so that they come back with the cookie of the short token
  // The client puts the position into the query, a browser into a header.
  const turnedAway = (byClient) => front.turnedAway.filter(({ path }) => path.includes('last_event_id') === byClient).length;
  await until('both are turned away', () => turnedAway(true) > 0 && turnedAway(false) > 0);
  await place.put('alice', 'after');
  const before = turnedAway(false);
  await until('the browser comes back in vain', () => turnedAway(false) > before);
  for (const { text } of front.turnedAway) {
    assert.ok(Number(/^retry: (\d+)$/m.exec(text)[1]) >= 30_000, text);
    assert.deepEqual(
      [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type),
      ['goodbye'],
      text,
    );
    assert.match(text, /"reason":"token_expired"/);
  }
  for (const page of both) {
    assert.equal(await page.getByText('alice/secret').count(), 1, 'what is shown stays');
    assert.equal(await page.getByText('alice/after').count(), 0);
  }

  await renew(60_000);
  for (const page of both) await page.getByText('alice/after: only alice reads this').waitFor();
  assert.deepEqual(await page.evaluate(() => [globalThis.snapshots, globalThis.removed]), [1, 0]);
  assert.deepEqual(await native.page.evaluate(() => [globalThis.events.reset, globalThis.removed]), [1, 0]);
});

scenario('a session ends by itself while a table is open: the page says why, and another login brings the data back', async (stage) => {
  const { origin, guard } = await Place.open(stage);
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const tab = await visitor.open(`${origin}/#/watches/services`);
  await signIn(tab.page, guard.jwt('alice', 60_000));
  await tab.row('alice/secret').waitFor();
  await beginSession(tab.page, guard.jwt('alice', 1_000));
  await tab.row('alice/secret').waitFor();
  await tab.page.getByRole('alert').getByText('The gateway says: the credential has expired').waitFor();
  assert.equal(await tab.row('alice/secret').count(), 0);
  await signIn(tab.page, guard.jwt('alice', 600_000));
  await signedInAs(tab.page, 'alice');
  await tab.row('alice/secret').waitFor();
});
