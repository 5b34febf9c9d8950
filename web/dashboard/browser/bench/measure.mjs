import { startChromium } from '../stage/chromium.mjs';
import { find } from '../stage/filter.mjs';
import { Frames } from '../stage/frames.mjs';
import { heapBytes } from '../stage/heap.mjs';
import { until } from '../stage/until.mjs';
import { Visitor } from '../stage/visitor.mjs';
import { Renderers } from './renderers.mjs';

/** A page in a separate browser. */
async function visit(url, rows, measure) {
  const chromium = await startChromium();
  try {
    const visitor = await Visitor.arrive(chromium.browser);
    const frames = await Frames.of(visitor.context);
    const tab = await visitor.open(url);
    await tab.consistent({ rows, limit: 120_000 });
    return await measure({ chromium, visitor, frames, tab });
  } finally {
    await chromium.stop();
  }
}

/** From the navigation to the first consistent table. */
export function measureLoad(url, rows) {
  return visit(url, rows, async ({ frames, tab }) => {
    const ms = await until('the page says when it was consistent', () => tab.consistentAfter());
    return { ms, longest: (await frames.take(tab.page)).longest };
  });
}

/** From a typed filter to its first rows: in the whole watch, by the page; then through a view, which the gateway selects. */
export function measureFilters(url, rows) {
  return visit(url, rows, async ({ tab }) => {
    await tab.page.waitForTimeout(500); // an idle page
    const page = await find(tab, '"critical" "eu-west-1a"');
    const view = await find(tab, 'state:critical zone:eu-west-1a');
    if (view.found !== page.found) throw new Error(`the page finds ${page.found} rows, the view has ${view.found}`);
    return { page: page.ms, view: view.ms };
  });
}

/** A page while its rows change. */
export function measureChanges(url, rows, { upstream, gateway, perSecond, seconds }) {
  return visit(url, rows, async ({ chromium, visitor, frames, tab }) => {
    const renderers = await Renderers.of(chromium.browser);
    const newest = async () => Number((await gateway.watch('services')).revision);
    await upstream.change('services', perSecond);
    const first = await newest();
    await until('the changes are under way', async () => (await newest()) > first + perSecond);

    const heapBefore = await heapBytes(visitor.context, tab.page);
    const before = await renderers.usage();
    const from = await newest();
    await frames.take(tab.page);
    const delays = [];
    for (let seen = from; seen < from + perSecond * seconds; ) {
      seen = await until('a second of changes', async () => {
        const now = await newest();
        return now >= seen + perSecond && now;
      });
      delays.push(await tab.delay(seen, 120_000));
    }
    const taken = await frames.take(tab.page);
    const after = await renderers.usage();
    const changes = (await newest()) - from;
    const heapAfter = await heapBytes(visitor.context, tab.page);
    await upstream.change('services', 0);
    return {
      changes,
      frames: taken,
      heapBefore,
      heapAfter,
      memory: after.memory,
      cpuMicroseconds: ((after.cpu - before.cpu) * 1e6) / changes,
      delay: Math.max(...delays),
    };
  });
}
