import { readFile } from 'node:fs/promises';

/** The script of axe, for the pages of a visitor: `visitor.context.addInitScript(axe)`. */
export const axe = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Returns what axe finds in a page. */
export async function violations(page) {
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
}
