import assert from 'node:assert/strict';
import { nginxProgram, startNginx } from '../stage/nginx.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('documentation: the search finds a section, by the keyboard alone', async (stage) => {
  const { origin } = await shared.gateway();
  const visitor = await stage.visitor();
  const { page } = await visitor.open(`${origin}/docs/sources/etcd`);
  await finds(page, `${origin}/docs/`);

  await page.getByRole('searchbox', { name: 'Search' }).fill('thereisnosuchword');
  await page.getByRole('status').getByText('Nothing found').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.getByRole('searchbox').inputValue(), '');
  assert.equal(await page.locator('.results').isVisible(), false);
});

scenario(
  'documentation: below a path of nginx',
  async (stage) => {
    const nginx = stage.own(await startNginx(await shared.gateway()));
    const visitor = await stage.visitor();
    const { page } = await visitor.open(`${nginx.origin}/tide/docs/sources/etcd`);
    await finds(page, `${nginx.origin}/tide/docs/`);
  },
  { skip: nginxProgram ? false : 'nginx is missing: apt-get install nginx' },
);

scenario('documentation: a phone shows each page without scrolling sideways', async (stage) => {
  const { origin } = await shared.gateway();
  const visitor = await stage.visitor({ viewport: { width: 390, height: 800 } });
  const { page } = await visitor.open(`${origin}/docs/`);
  const paths = await page.locator('nav a').evaluateAll((links) => links.map((link) => link.href));
  assert.ok(paths.length > 20, `${paths.length} pages`);
  for (const path of paths) {
    await page.goto(path);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(width, 390, path);
  }
  await page.getByRole('searchbox', { name: 'Search' }).fill('heartbeat');
  await page.locator('.results li').first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
});

/** Searches for the words of the protocol, and follows the first result. */
async function finds(page, docs) {
  await page.getByRole('searchbox', { name: 'Search' }).focus();
  await page.keyboard.type('correct client');
  await page.locator('.results li').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${docs}protocol#a-correct-client`);
  await page.getByRole('heading', { name: 'A correct client' }).waitFor();
}
