import assert from 'node:assert/strict';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

scenario('a resource is created, edited in conflict with another user, and deleted', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  visitor.tolerate(/status of 412/); // which the page shows as well
  const tab = await visitor.open(`${gateway.origin}/#/watches/notes`);
  const dialog = tab.page.getByRole('dialog');
  const text = dialog.getByRole('textbox', { name: 'Value' });
  await tab.consistent({ rows: 1 });

  await tab.page.getByRole('button', { name: 'New resource' }).click();
  await dialog.getByRole('textbox', { name: 'Key' }).fill('a');
  await text.fill('{"text": "written here"}');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await tab.consistent({ rows: 2 });
  assert.deepEqual(await valueOf(gateway, 'a'), { text: 'written here' });

  await tab.row('a').click();
  await tab.detail.getByRole('button', { name: 'Edit' }).click();
  await text.fill('{"text": "written over it"}');
  await tab.page.evaluate(() => history.back());
  await dialog.getByText('Your changes are not saved').waitFor();
  await dialog.getByRole('button', { name: 'Keep editing' }).click();
  await gateway.put('notes', 'a', { text: 'written by another user' });
  await dialog.getByRole('alert').getByText('The resource has changed').waitFor();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('written by another user').waitFor();
  assert.deepEqual(await valueOf(gateway, 'a'), { text: 'written by another user' }, 'nothing is overwritten unseen');
  await dialog.getByRole('button', { name: 'Keep my text' }).click();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual(await valueOf(gateway, 'a'), { text: 'written over it' });

  await tab.detail.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await tab.consistent({ rows: 1 });
});

async function valueOf(gateway, key) {
  return (await (await fetch(`${gateway.origin}/v1/watches/notes/resources/${key}`)).json()).value;
}
