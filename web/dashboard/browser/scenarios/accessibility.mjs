import assert from 'node:assert/strict';
import { axe, violations } from '../stage/axe.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { enter, scenes } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { openRows, Place, refusals, signedInAs, signIn } from './access/place.mjs';

const table = scenes.find(({ name }) => name === 'watch');

/** Panels and menus of a watch. */
const finding = [
  {
    ...table,
    name: 'suggestions',
    async pose({ page }) {
      await page.getByRole('combobox', { name: 'Filter' }).pressSequentially('sta');
      await page.getByRole('option').first().waitFor();
      await page.keyboard.press('ArrowDown');
    },
  },
  {
    ...table,
    name: 'a mistake in the filter',
    hash: '#/watches/services?filter=state:critical+%22a',
    pose: ({ page }) => page.getByText('the quote is not closed').waitFor(),
  },
  { ...table, name: 'keys', hash: '#/watches/services?keys=', pose: ({ page }) => page.getByRole('treeitem').nth(1).waitFor() },
  {
    ...table,
    name: 'views',
    async pose({ page }) {
      await page.getByRole('button', { name: 'Views' }).click();
      await page.getByRole('textbox', { name: 'Name of the view' }).fill('mine');
      await page.getByRole('button', { name: 'Save this view' }).click();
      await page.getByRole('link', { name: 'mine' }).waitFor();
    },
  },
  {
    ...table,
    name: 'palette',
    async pose({ page }) {
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').getByRole('option').first().waitFor();
    },
  },
  { ...table, name: 'display', pose: ({ page }) => page.getByRole('button', { name: 'Display' }).click() },
  {
    name: 'a difference, and YAML with a mistake',
    hash: '#/watches/notes?key=welcome',
    shows: table.shows,
    async pose({ page, detail }) {
      await detail.getByRole('button', { name: 'Edit' }).click();
      const text = page.getByRole('dialog').getByRole('textbox', { name: 'Value' });
      await text.fill('{"text": "changed"}');
      await page.getByText('lines removed').waitFor();
      await page.getByRole('button', { name: 'Edit as YAML' }).click();
      await page.getByText('Value (YAML)').waitFor();
      await text.fill('a: 0x1F');
      await page.getByText('JSON has no number').waitFor();
    },
  },
];

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
    for (const scene of [...scenes, ...finding]) {
      const tab = await visitor.open(`${gateway.origin}/${scene.hash}`);
      await enter(scene, tab);
      assert.deepEqual(await violations(tab.page), [], scene.name);
      await tab.page.close();
    }
  });
}

scenario('axe finds nothing in a login', async (stage) => {
  const { origin, guard, upstream } = await Place.open(stage, { allow: openRows });
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
  await upstream.put('revocations', 'token/alice', {});
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
