import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { until } from '../stage/until.mjs';

scenario('a tab that is hidden for too long closes its stream, and catches up when it is shown', async (stage) => {
  const upstream = await shared.upstream();
  const gateway = await Gateway.start(upstream);
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  await visitor.context.clock.install();
  const tab = await visitor.open(`${gateway.origin}/#/watches/nodes`);
  await tab.consistent({ rows: 50 });

  await setHidden(tab.page, true);
  await tab.page.clock.fastForward('10:00');
  await until('the stream is given up', async () => (await gateway.watch('nodes')).subscribers === 0);
  await upstream.put('nodes', 'while hidden', { name: 'seen later' });

  await setHidden(tab.page, false);
  await tab.consistent({ rows: 51 });
  await tab.banner.waitFor({ state: 'detached' });
  await upstream.delete('nodes', 'while hidden');
  await tab.consistent({ rows: 50 });
});

// A headless browser always shows all its tabs: this simulates the events of one with
// windows.
async function setHidden(page, hidden) {
  await page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => (value ? 'hidden' : 'visible') });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
}
