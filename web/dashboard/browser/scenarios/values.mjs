import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('a number that is too large for JavaScript has every digit', async (stage) => {
  const gateway = await shared.gateway();
  const url = `${gateway.origin}/v1/watches/notes/resources/large`;
  const put = (digits) => fetch(url, { method: 'PUT', body: `{"number":${digits}}` });
  await put('9007199254740993');
  stage.own({ stop: () => fetch(url, { method: 'DELETE' }) });

  const visitor = await stage.visitor();
  const tab = await visitor.open(`${gateway.origin}/#/watches/notes?columns=key,number&key=large`);
  await tab.row('large').getByText('9007199254740993').waitFor();
  await tab.detail.getByRole('treeitem').getByText('9007199254740993').waitFor();

  await put('9007199254740992'); // the same, for JSON.parse
  await tab.detail.locator('ins').getByText('9007199254740992').waitFor();
  await tab.detail.locator('del').getByText('9007199254740993').waitFor();
});

scenario('a deeply nested value can be read', async (stage) => {
  const gateway = await shared.gateway();
  const depth = 60;
  await gateway.put(
    'notes',
    'deep',
    Array.from({ length: depth }).reduce((inner) => ({ inner }), 'the bottom'),
  );
  stage.own({ stop: () => fetch(`${gateway.origin}/v1/watches/notes/resources/deep`, { method: 'DELETE' }) });

  const visitor = await stage.visitor({ viewport: { width: 390, height: 844 } });
  const tab = await visitor.open(`${gateway.origin}/#/watches/notes?key=deep`);
  await tab.detail.getByRole('tree').focus();
  for (let i = 0; i < 2 * depth; i++) await tab.page.keyboard.press('ArrowRight');
  await tab.detail.getByText('the bottom').waitFor();
  const { scrollWidth, clientWidth } = await tab.detail.evaluate(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }));
  assert.ok(scrollWidth <= clientWidth, `the tree is ${scrollWidth} wide, there is room for ${clientWidth}`);
});

scenario('on a phone, long keys leave room for the other columns', async (stage) => {
  const gateway = await shared.gateway();
  const key = 'a-namespace-with-a-long-name/and-a-deployment-with-a-longer-one';
  await gateway.put('notes', key, { text: 'short', state: 'passing' });
  stage.own({ stop: () => fetch(`${gateway.origin}/v1/watches/notes/resources/${key}`, { method: 'DELETE' }) });

  const visitor = await stage.visitor({ viewport: { width: 320, height: 640 } });
  const tab = await visitor.open(`${gateway.origin}/#/watches/notes?columns=key,text,state&filter=passing`);
  const [name, , state] = await cells(tab.row(key));
  assert.ok(state.left >= name.right, `the last column begins at ${state.left}, under the key, which ends at ${name.right}`);
});

/** The positions of the cells of a row that is scrolled to its right end. */
async function cells(row) {
  await row.waitFor();
  return row.evaluate((row) => {
    row.closest('[role=grid]').scrollLeft = 10_000;
    return [...row.children].map((cell) => cell.getBoundingClientRect().toJSON());
  });
}
