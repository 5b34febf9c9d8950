import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { pages } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

const axe = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

for (const colorScheme of ['light', 'dark']) {
  scenario(`axe finds nothing on any page, ${colorScheme}`, async (stage) => {
    const gateway = await shared.gateway();
    const visitor = await stage.visitor({ colorScheme });
    await visitor.context.addInitScript(axe);
    for (const { name, hash, shows } of pages) {
      const tab = await visitor.open(`${gateway.origin}/${hash}`);
      await tab.page.locator(shows).first().waitFor();
      assert.deepEqual(await violations(tab.page), [], name);
      await tab.page.close();
    }
  });
}

scenario('axe finds what is wrong', async (stage) => {
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
