import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { clientFolder, Site } from '../stage/site.mjs';

const hourMs = 3_600_000;

for (const [clock, aheadMs] of [
  ['is right', 0],
  ['is an hour ahead', hourMs],
  ['is an hour behind', -hourMs],
]) {
  scenario(`a page whose clock ${clock} reports what its user sees`, async (stage) => {
    const site = stage.own(
      await Site.start({ '/client/': clientFolder }, (_request, response) => {
        response.setHeader('Content-Type', 'text/html').end('<!doctype html><link rel="icon" href="data:,"><p id="shown"></p>');
      }),
    );
    const gateway = await Gateway.start(await shared.upstream(), { origins: [site.origin], deliveryReports: true });
    stage.own({ stop: gateway.kill });
    const visitor = await stage.visitor();
    visitor.tolerate(/^a request to /); // the gateway is another origin
    await visitor.context.addInitScript(setClock, aheadMs);
    const { page } = await visitor.open(`${site.origin}/`);
    await page.evaluate(follow, gateway.origin);

    // The first report only makes the gateway remember commits.
    for (let n = 0, values; (values = await delivery(gateway)).count < 3; n++) {
      await gateway.put('notes', 'now', { n });
      await page.getByText(String(n), { exact: true }).waitFor();
      assert.ok(values.count <= n, 'a change counts once');
    }
    const { count, sum, sane } = await delivery(gateway);
    assert.equal(sane, count, `${count} values, ${sum} s together`);
    await page.evaluate(() => globalThis.end());
  });
}

/** What the metrics say of the watch notes. */
async function delivery({ operations }) {
  const text = await (await fetch(`${operations}/metrics`)).text();
  const value = (name, more = '') =>
    Number(RegExp(`^watchtide_browser_delivery_seconds_${name}{watch="notes"${more}} (.*)$`, 'm').exec(text)?.[1] ?? 0);
  return { count: value('count'), sum: value('sum'), sane: value('bucket', ',le="30"') };
}

// Runs in the page.
function setClock(aheadMs) {
  const now = Date.now;
  Date.now = () => now() + aheadMs;
}

// Runs in the page.
async function follow(gateway) {
  const { watch } = await import('/client/index.js');
  const { reportDelivery } = await import('/client/delivery.js');
  const store = watch(gateway, { watches: ['notes'] }).store('notes');
  store.subscribe(({ resources }) => {
    document.querySelector('#shown').textContent = resources.get('now')?.value.n;
  });
  globalThis.end = reportDelivery(gateway, [store], { everyMs: 1_000 });
}
