import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Gateway } from '../stage/gateway.mjs';
import { enter, scenes } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

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
  await tab.page.evaluate(() => { document.querySelector('main').append(document.createElement('button')); });
  assert.match(String(await violations(tab.page)), /button-name/);
});

async function violations(page) {
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
}
