import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Example } from '../stage/example.mjs';
import { run } from '../stage/process.mjs';
import { scenario } from '../stage/scenario.mjs';

scenario('the example without a library shows what is written, and says when the connection is lost', async (stage) => {
  const { page, gateway } = await Example.open(stage, 'page');
  await gateway.put('notes', 'milk', 'two litres');
  await page.getByText('two litres').waitFor();
  await page.getByRole('status').getByText('live').waitFor();
  await gateway.put('notes', 'milk', 'none');
  await page.getByText('none').waitFor();
  assert.equal(await page.locator('dt').count(), 1);
  await gateway.kill();
  await page.getByRole('status').getByText('reconnecting').waitFor();
});

// The watch that `serve --demo` has too, for pages of another origin.
const processes = `
http: { listen: "127.0.0.1:8080", allowed_origins: ["http://localhost:3000"] }
sources: { machine: { type: host } }
watches: { processes: { source: machine, collection: processes } }
`;

scenario('the pages of the README show the processes of this machine', async (stage) => {
  const readme = await readFile(fileURLToPath(new URL('../../../../README.md', import.meta.url)), 'utf8');
  const pages = [...readme.matchAll(/^```html\n(.*?)^```$/gms)].map(([, page]) => page);
  assert.equal(pages.length, 2);
  for (const page of pages) {
    const shown = await Example.show(stage, page, processes);
    await shown.page
      .locator('#out')
      .getByText(/^\d+ \S+ .* %$/m)
      .waitFor();
  }
});

scenario('the wall screen shows what needs attention first, and whether it is out of date', async (stage) => {
  const { page, gateway } = await Example.open(stage, 'consul-wall');
  const instance = (service, id, status, output) => ({
    service,
    node: 'n1',
    id,
    status,
    checks: [{ id: 'http', name: 'HTTP', status, output }],
  });
  for (const id of ['api-1', 'api-2', 'api-3']) await gateway.put('services', `api%2Fn1%2F${id}`, instance('api', id, 'passing', ''));
  await gateway.put('services', 'web%2Fn1%2Fweb-1', instance('web', 'web-1', 'critical', 'connection refused'));
  await page.getByText('1 of 2 need attention').waitFor();
  assert.deepEqual(await page.locator('h2').allInnerTexts(), ['web', 'api']);
  await page.getByText('connection refused').waitFor();
  await gateway.put('services', 'web%2Fn1%2Fweb-1', instance('web', 'web-1', 'passing', ''));
  await page.getByText('all 2 pass').waitFor();
  assert.equal(await page.getByRole('alert').isVisible(), false);
  await gateway.kill();
  await page.getByRole('alert').getByText('No connection since').waitFor();
});

scenario('the pods of the example are grouped by namespace', async (stage) => {
  const { page, gateway } = await Example.open(stage, 'kubernetes-pods');
  const pod = (namespace, name, phase, ready, restarts = 0) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name },
    spec: { nodeName: 'node-1' },
    status: { phase, conditions: [{ type: 'Ready', status: ready }], containerStatuses: [{ restartCount: restarts }] },
  });
  await gateway.put('pods', 'shop%2Fweb-1', pod('shop', 'web-1', 'Running', 'True'));
  await gateway.put('pods', 'shop%2Fweb-2', pod('shop', 'web-2', 'Running', 'False', 7));
  await gateway.put('pods', 'mail%2Fqueue-0', pod('mail', 'queue-0', 'Pending', 'False'));
  await page.locator('[data-pod="mail/queue-0"][data-state=pending]').waitFor();
  await page.locator('[data-pod="shop/web-1"][data-state=ready]').waitFor();
  await page.locator('[data-pod="shop/web-2"][data-state=failing]').getByText('7').waitFor();
  assert.deepEqual(await page.locator('h2').allInnerTexts(), ['mail 0 of 1 ready', 'shop 1 of 2 ready']);
});

const applications = 8_000;

scenario(
  'the applications of the example are sorted, filtered and live',
  async (stage) => {
    const folder = fileURLToPath(new URL('../../../../examples/applications/', import.meta.url));
    const source = await readFile(`${folder}index.html`, 'utf8');
    assert.ok(source.trimEnd().split('\n').length <= 60, 'it is short');
    const { page, gateway } = await Example.open(stage, 'applications');
    const put = (i, health = i % 100 === 0 ? 'Degraded' : 'Healthy') => {
      const metadata = { namespace: 'argocd', name: `app-${String(i).padStart(4, '0')}` };
      const status = { health: { status: health }, sync: { status: 'Synced' }, resources: [{ kind: 'Deployment' }] };
      return gateway.put('applications', `argocd%2F${metadata.name}`, { metadata, spec: { project: `team-${i % 7}` }, status });
    };
    const all = Array.from({ length: applications }, (_, i) => i);
    for (let i = 0; i < all.length; i += 100) await Promise.all(all.slice(i, i + 100).map((i) => put(i)));
    await page.reload();
    const names = () => page.locator('tbody tr td:first-child').allInnerTexts();
    const shown = (text) => page.getByText(text, { exact: true }).waitFor();
    await shown('1 to 50 of 8000');
    await page.getByRole('status').getByText('live').waitFor();
    assert.deepEqual((await names()).slice(0, 2), ['app-0000', 'app-0001']);
    await page.getByRole('button', { name: 'Next' }).click();
    await shown('51 to 100 of 8000');
    await page.getByRole('button', { name: 'Name' }).click();
    await page.locator('tbody tr:first-child').getByText('app-7999').waitFor();
    await page.getByLabel('Health').selectOption('Degraded 80');
    await shown('1 to 50 of 80');
    assert.deepEqual((await names()).slice(0, 2), ['app-7900', 'app-7800']);
    await page.getByLabel('Name').fill('argocd'); // the namespace, which each key begins with
    await shown('0 to 0 of 0');
    await page.getByLabel('Name').fill('app-1');
    await shown('1 to 10 of 10');
    await put(1900, 'Healthy');
    await page.getByText('app-1900').waitFor({ state: 'detached' });
    await page.locator('option').getByText('Degraded 79').waitFor({ state: 'attached' });
    await gateway.kill();
    await page.getByRole('status').getByText('offline').waitFor();
  },
  { timeout: 120_000 },
);

// WATCHTIDE_ROWS=1000000 has as many as the README.
const payments = Number(process.env.WATCHTIDE_ROWS ?? 120_000);

scenario(
  'the example of a long list scrolls to any place, without a hole',
  async (stage) => {
    const fill = Example.runs('million-rows', /^\$ (awk .* \| watchtide store import payments\.db)$/m, (command) =>
      command.replaceAll('1000000', String(payments)),
    );
    const { page, gateway } = await Example.open(stage, 'million-rows', fill);
    const name = (i) => `payment ${String(i).padStart(7, '0')}`;
    await page.getByText(`live, ${payments} rows`).waitFor();
    const shown = () => page.locator('#list > div > span:first-child').allInnerTexts();
    const scroller = page.locator('#scroller');
    const height = await scroller.evaluate((element) => element.clientHeight);
    for (const first of [0, 40, payments / 2, 200, payments - 10]) {
      await scroller.evaluate((element, top) => element.scrollTo(0, top), first * 16);
      const from = Math.min(first, Math.floor((payments * 16 - height) / 16));
      await page.getByText(name(from), { exact: true }).waitFor();
      await page.locator('#list:not(.elsewhere)').waitFor();
      const names = await shown();
      assert.ok(names.length >= Math.floor(height / 16), `${names.length} rows at ${first}`);
      assert.deepEqual(
        names,
        names.map((_, i) => name(from + i)),
      );
    }
    await page.getByLabel('Order').selectOption('largest first');
    await page.locator('#list:not(.elsewhere)').getByText('100002', { exact: true }).first().waitFor();
    await gateway.put('payments', 'p0000017', { name: name(17), amount: 1_000_000, city: 'Lima' });
    await page.locator('#list > div:first-child').getByText(name(17)).waitFor();
  },
  { timeout: 120_000 },
);

scenario('the example in React shows and changes notes', async (stage) => {
  const folder = fileURLToPath(new URL('../../../../examples/react/', import.meta.url));
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder });
  await run('npm', ['run', '--silent', 'build'], { cwd: folder });
  assert.ok((await readFile(`${folder}dist/main.js`)).length < 500_000);
  const { page, gateway } = await Example.open(stage, 'react');
  await gateway.put('notes', 'milk', { text: 'two litres', done: false });
  const milk = page.getByRole('checkbox', { name: 'milk: two litres' });
  await milk.waitFor();
  await milk.click();
  await page.locator('li.done').getByText('two litres').waitFor();
  await page.getByText('1 of 1 done').waitFor();
});
