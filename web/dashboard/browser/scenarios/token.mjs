import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { until } from '../stage/until.mjs';
import { Place, refusals } from './access/place.mjs';

/** A page that sends a token with each stream, and renews none; issue returns the tokens. */
async function openPage(stage, place, issue) {
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const hints = [];
  await visitor.context.exposeFunction('issueToken', (expired) => issue(hints.push(expired)));
  const { page } = await visitor.open(`${place.origin}/pages/index.html?by=token without renewal`);
  await page.getByText('alice/secret: only alice reads this').waitFor();
  const shows = (id, text) => page.locator(`#${id}`).getByText(text, { exact: true }).waitFor();
  return { page, hints, shows };
}

scenario('a token expires: the next one is requested, and the stream resumes', async (stage) => {
  const place = await Place.open(stage);
  const { page, hints, shows } = await openPage(stage, place, (number) => place.guard.jwt('alice', number === 1 ? 2_000 : 60_000));
  await until('there is a second stream', () => place.front.asked('GET', '/v1/events').length === 2);
  await place.put('alice', 'after');
  await page.getByText('alice/after: only alice reads this').waitFor();
  await shows('state', 'in_sync');
  assert.deepEqual(hints, [false, true]);
  const [first, second] = place.front.asked('GET', '/v1/events');
  assert.deepEqual([first.position, second.position.split('@')[0]], ['', 'services']);
  assert.deepEqual(await page.evaluate(() => [globalThis.snapshots, globalThis.removed]), [1, 0]);
});

scenario('a token is refused: the page reports it and does not retry', async (stage) => {
  const place = await Place.open(stage);
  const { page, shows } = await openPage(stage, place, (number) => (number === 1 ? place.guard.jwt('alice', 2_000) : 'an unknown token'));
  await page.clock.install();
  await shows('state', 'closed 401');
  await page.clock.fastForward('10:00');
  await shows('state', 'closed 401');
  assert.deepEqual(
    place.front.asked('GET', '/v1/events').map(({ status }) => status),
    [200, 401],
  );
});
