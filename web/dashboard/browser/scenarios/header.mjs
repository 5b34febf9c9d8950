import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { openRows, Place, refusals, signedInAs, signIn } from './access/place.mjs';

scenario('the header has room for all links of an operator who is signed in', async (stage) => {
  const place = await Place.open(stage, { allow: openRows });
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals);
  const { page } = await visitor.open(`${place.gateways[0].operations}/#/health`);
  await page.locator('.user').getByRole('button').click();
  await signIn(page, place.guard.token('alice'));
  await signedInAs(page, 'alice');
  await page.getByRole('link', { name: 'Replicas' }).waitFor();
  for (const width of [1280, 1340, 1400, 1440, 1600]) {
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await page.evaluate(measured), { cut: 0, lines: 1, over: 0 }, `${width} px`);
  }
});

// Runs in the page.
function measured() {
  const header = document.querySelector('header.top');
  const nav = header.querySelector('nav');
  const centres = new Set(
    [...header.children].map((child) => Math.round((child.getBoundingClientRect().top + child.getBoundingClientRect().bottom) / 20)),
  );
  return { cut: nav.scrollWidth - nav.clientWidth, lines: centres.size, over: document.documentElement.scrollWidth - innerWidth };
}
