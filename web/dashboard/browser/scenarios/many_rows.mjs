import assert from 'node:assert/strict';
import { Frames } from '../stage/frames.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { heapBytes } from '../stage/heap.mjs';
import { scenario } from '../stage/scenario.mjs';
import { Upstream } from '../stage/upstream.mjs';

// Times are printed and not checked, since tests run on busy machines: see make bench-browser.
const rows = 100_000;
const maxHeap = 400e6;

scenario(
  '100,000 rows',
  async (stage) => {
    const upstream = stage.own(await Upstream.start());
    await upstream.fill('services', rows);
    const gateway = await Gateway.start(upstream);
    stage.own({ stop: gateway.kill });
    const visitor = await stage.visitor();
    const frames = await Frames.of(visitor.context);
    const tab = await visitor.open(`${gateway.origin}/#/watches/services`);
    await tab.consistent({ rows, limit: 60_000 });
    const took = await tab.consistentAfter();
    const { longest } = await frames.take(tab.page);
    const heap = await heapBytes(visitor.context, tab.page);
    console.log(
      `# 100,000 rows: consistent after ${Math.round(took)} ms, longest frame ${Math.round(longest)} ms, heap ${Math.round(heap / 1e6)} MB`,
    );
    assert.ok(heap < maxHeap, `the heap holds ${heap} bytes`);

    await tab.table.focus();
    await tab.page.keyboard.press('End');
    await tab.rows.last().waitFor();
    assert.ok((await tab.rows.count()) < 200, 'only what is visible is rendered');
  },
  { timeout: 120_000 },
);
