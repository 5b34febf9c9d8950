import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { until } from '../stage/until.mjs';
import { Upstream } from '../stage/upstream.mjs';

const perSecond = 1_000;
const slowdown = 6;
const seconds = 8;
const delayLimit = 3_000; // in ms; a page that does not keep up is behind it again and again

scenario(
  'a slow CPU keeps up with 1,000 changes per second',
  async (stage) => {
    const upstream = stage.own(await Upstream.start());
    await upstream.fill('services', 5_000);
    const gateway = await Gateway.start(upstream);
    stage.own({ stop: gateway.kill });
    const visitor = await stage.visitor();
    const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
    await tab.consistent({ rows: 5_000 });
    const cdp = await visitor.context.newCDPSession(tab.page);
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowdown });

    await upstream.change('services', perSecond);
    const delays = [];
    for (let seen = 5_000; seen < 5_000 + seconds * perSecond; ) {
      seen = await until('more changes', async () => {
        const newest = Number((await gateway.watch('services')).revision);
        return newest > seen + perSecond / 2 && newest;
      });
      delays.push(await tab.delay(seen));
    }
    await upstream.change('services', 0);
    const { revision } = await gateway.watch('services');
    // One may be late, since the machine may have been busy for a while.
    assert.ok(delays.filter((ms) => ms > delayLimit).length <= 1, `how far the page was behind, in ms, again and again: ${delays}`);
    await tab.consistent({ rows: 5_000, revision });
  },
  { timeout: 90_000 },
);
