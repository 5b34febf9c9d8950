import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { scenario } from '../stage/scenario.mjs';
import { clientFolder, Site } from '../stage/site.mjs';
import { Gatekeeper } from './token/gatekeeper.mjs';

const page = fileURLToPath(new URL('./token/', import.meta.url));

async function openPage(stage, gatekeeper) {
  const site = stage.own(await Site.start({ '/client/': clientFolder, '/page/': page }, gatekeeper.answer));
  const visitor = await stage.visitor();
  visitor.tolerate(/status of 401/);
  const tab = await visitor.open(`${site.origin}/page/index.html`);
  const shows = (id, text) => tab.page.locator(`#${id}`).getByText(text, { exact: true }).waitFor();
  return { page: tab.page, shows };
}

scenario('a token expires: the next one is requested, and the stream resumes', async (stage) => {
  const gatekeeper = new Gatekeeper();
  const { page, shows } = await openPage(stage, gatekeeper);
  await shows('values', 'before');
  gatekeeper.expire('token-2');
  await shows('values', 'before after');
  await shows('state', 'in_sync');
  assert.deepEqual(gatekeeper.requests, [
    { token: 'token-1', position: undefined },
    { token: 'token-2', position: 'secrets@a-1' },
  ]);
  assert.deepEqual(await page.evaluate(() => globalThis.asked), [false, true]);
});

scenario('a token is refused: the page reports it and does not retry', async (stage) => {
  const gatekeeper = new Gatekeeper();
  const { page, shows } = await openPage(stage, gatekeeper);
  await shows('values', 'before');
  await page.clock.install();
  gatekeeper.expire('an unknown token');
  await shows('state', 'closed 401');
  await page.clock.fastForward('10:00');
  await shows('state', 'closed 401');
  assert.equal(gatekeeper.requests.length, 2, JSON.stringify(gatekeeper.requests));
});
