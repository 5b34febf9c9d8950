import { pages } from '../stage/pages.mjs';

const shown = (name) => {
  const { hash, shows } = pages.find((page) => page.name === name);
  return { name, hash, pose: ({ page }) => page.locator(shows).first().waitFor() };
};

/** What is photographed: where it is, and what is done before. */
export const scenes = [
  { ...shown('overview'), async pose({ page, history }) {
    await page.locator('[data-testid=watch-row]').first().waitFor();
    await history();
  } },
  shown('watch'),
  { name: 'detail', hash: '#/watches/services', async pose({ tab, page, history }) {
    await tab.rows.first().click();
    await page.getByTestId('resource-detail').waitFor();
    await history();
  } },
  shown('stream'),
  shown('subscribers'),
  shown('upstreams'),
];
