import { after } from 'node:test';
import { startChromium } from './chromium.mjs';
import { Gateway } from './gateway.mjs';
import { Upstream } from './upstream.mjs';

// Started at the first use, shared by all scenarios of the run, and stopped after it.
const begun = new Map();

function once(name, begin) {
  if (!begun.has(name)) begun.set(name, begin());
  return begun.get(name);
}

after(async () => {
  for (const [, thing] of [...begun].reverse()) await (await thing).stop();
});

export const shared = {
  chromium: () => once('chromium', startChromium),

  /** services has 1,000 rows and nodes 50, without changes; a scenario undoes its own changes. */
  upstream: () =>
    once('upstream', async () => {
      const upstream = await Upstream.start();
      await upstream.fill('services', 1_000);
      await upstream.fill('nodes', 50);
      return upstream;
    }),

  /** A gateway that stays healthy. Scenarios that break one start their own. */
  gateway: () =>
    once('gateway', async () => {
      const gateway = await Gateway.start(await shared.upstream());
      await gateway.put('notes', 'welcome', { text: 'The kettle is on.', by: 'Ada', pinned: true });
      return Object.assign(gateway, { stop: gateway.kill });
    }),
};
