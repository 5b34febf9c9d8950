import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Gateway } from '../stage/gateway.mjs';
import { enter, scenes } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { openRows, Place, refusals, signedInAs, signIn } from './access/place.mjs';

const axe = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

for (const [name, options] of Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  'on a phone': { colorScheme: 'light', ...phone },
})) {
  scenario(`axe finds nothing on any page, ${name}`, async (stage) => {
    const gateway = await shared.gateway();
    const visitor = await stage.visitor(options);
    await visitor.context.addInitScript(axe);
    for (const scene of scenes) {
      const tab = await visitor.open(`${gateway.origin}/${scene.hash}`);
      await enter(scene, tab);
      assert.deepEqual(await violations(tab.page), [], scene.name);
      await tab.page.close();
    }
  });
}

scenario('axe finds nothing in a login', async (stage) => {
  const {
    origin,
    guard,
    gateways: [gateway],
  } = await Place.open(stage, { allow: openRows });
  const tabs = [];
  for (const colorScheme of ['light', 'dark']) {
    const visitor = await stage.visitor({ colorScheme });
    visitor.tolerate(...refusals);
    await visitor.context.addInitScript(axe);
    const tab = await visitor.open(`${origin}/#/watches/services`);
    await tab.page.getByRole('heading', { name: 'You must sign in' }).waitFor();
    assert.deepEqual(await violations(tab.page), [], 'not signed in');
    await tab.page.locator('.user').getByRole('button').click();
    assert.deepEqual(await violations(tab.page), [], 'over the page');
    await signIn(tab.page, guard.token('alice'));
    await signedInAs(tab.page, 'alice');
    assert.deepEqual(await violations(tab.page), [], 'signed in');
    tabs.push(tab);
  }
  await gateway.put('revocations', encodeURIComponent('token/alice'), {});
  for (const { page } of tabs) {
    await page.getByText('You are not signed in any more').waitFor();
    assert.deepEqual(await violations(page), [], 'signed out');
  }
});

scenario('axe finds nothing in a warning', async (stage) => {
  const gateway = await Gateway.start(await shared.upstream());
  stage.own({ stop: gateway.kill });
  const tabs = [];
  for (const colorScheme of ['light', 'dark']) {
    const visitor = await stage.visitor({ colorScheme });
    visitor.tolerate(/Failed to load resource: net::ERR_/);
    await visitor.context.addInitScript(axe);
    tabs.push(await visitor.open(`${gateway.origin}/#/watches/services`));
  }
  for (const tab of tabs) await tab.consistent({ rows: 1_000 });
  await gateway.kill();
  for (const tab of tabs) {
    await tab.banner.waitFor();
    assert.deepEqual(await violations(tab.page), []);
  }
});

scenario('axe finds a violation', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  await visitor.context.addInitScript(axe);
  const tab = await visitor.open(`${gateway.origin}/`);
  await tab.ready();
  await tab.page.evaluate(() => {
    document.querySelector('main').append(document.createElement('button'));
  });
  assert.match(String(await violations(tab.page)), /button-name/);
});

async function violations(page) {
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
}
