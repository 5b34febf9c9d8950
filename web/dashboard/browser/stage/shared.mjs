import { after } from 'node:test';
import { startChromium } from './chromium.mjs';
import { Gateway } from './gateway.mjs';
import { Upstream } from './upstream.mjs';

// Begun when first asked for, used by every scenario of the run, ended after it.
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

  /** services holds 1,000 rows and nodes 50, neither changes; whoever changes them puts that back. */
  upstream: () => once('upstream', async () => {
    const upstream = await Upstream.start();
    await upstream.fill('services', 1_000);
    await upstream.fill('nodes', 50);
    return upstream;
  }),

  /** A gateway that stays well. Who wants to do it harm starts one of his own. */
  gateway: () => once('gateway', async () => {
    const gateway = await Gateway.start(await shared.upstream());
    await gateway.put('notes', 'welcome', { text: 'The kettle is on.', by: 'Ada', pinned: true });
    return Object.assign(gateway, { stop: gateway.kill });
  }),
};
