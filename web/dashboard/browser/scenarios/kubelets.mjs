// 1,300 nodes of 12 kB, each of which changes twice a second: 31 MB/s, which no page can draw. Not among all the scenarios,
// since it measures for a minute: make bench-kubelets, or
//
//   node --test scenarios/kubelets.mjs
//
// WATCHTIDE_MINUTES=60 measures each page for an hour, WATCHTIDE_PAGES=auto,window only some of
// them, and WATCHTIDE_SLOWDOWN=4 on a CPU that is four times slower.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { printTable } from '../bench/table.mjs';
import { Frames } from '../stage/frames.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { heapBytes } from '../stage/heap.mjs';
import { scenario } from '../stage/scenario.mjs';
import { clientFolder, Site } from '../stage/site.mjs';
import { Upstream } from '../stage/upstream.mjs';

const nodes = 1_300;
const bytes = 12_000;
const perSecond = 2 * nodes;

const seconds = process.env.WATCHTIDE_MINUTES ? 60 * Number(process.env.WATCHTIDE_MINUTES) : 12;
const slowdown = Number(process.env.WATCHTIDE_SLOWDOWN ?? 1); // of the CPU, for the page
const settleMs = 10_000; // until a rate is chosen
const clickMs = 500; // between two clicks
const markMs = Math.min(60_000, (seconds * 1_000) / 3); // between two measurements of the heap

// Far above the results on an idle machine, since tests run on busy ones.
const limits = { clickMs: 5_000, ageMs: 20_000 * Math.max(1, slowdown / 4), growth: 1.25, heap: 400e6 };

/** The pages: what they ask for, and whether they must stay usable. */
const pages = [
  { name: 'every change', kind: 'all' },
  { name: 'a rate that the client chooses', kind: 'auto', usable: true },
  { name: 'and three fields', kind: 'fields', usable: true },
  { name: 'a window of 50', kind: 'window', usable: true },
  { name: 'and three fields', kind: 'windowfields', usable: true },
].filter(({ kind }) => !process.env.WATCHTIDE_PAGES || process.env.WATCHTIDE_PAGES.split(',').includes(kind));

scenario(
  `a page of ${nodes} nodes, each of which changes twice a second, stays usable`,
  async (stage) => {
    const html = await readFile(new URL('kubelets.html', import.meta.url));
    const site = stage.own(
      await Site.start({ '/client/': clientFolder }, (_request, response) => response.setHeader('Content-Type', 'text/html').end(html)),
    );
    const upstream = stage.own(await Upstream.start());
    await upstream.fill('nodes', nodes, bytes, 'node');
    const gateway = await Gateway.start(upstream, { origins: [site.origin], heartbeat: '15s' });
    stage.own({ stop: gateway.kill });
    await upstream.change('nodes', perSecond);

    const results = [];
    stage.own({ stop: () => report(results) }); // also of those before one that fails
    for (const { name, kind, usable } of pages) {
      const visitor = await stage.visitor();
      visitor.tolerate(new RegExp(`^a request to ${gateway.origin}/`));
      const frames = await Frames.of(visitor.context);
      const { page } = await visitor.open(`${site.origin}/?gateway=${encodeURIComponent(gateway.origin)}&kind=${kind}`);
      const result = await measure({ visitor, page, frames, gateway });
      results.push({ name, ...result });
      await visitor.leave();
      const { clicks, age, heaps } = result;
      if (!usable) continue;
      assert.ok(clicks.length > 0, `${name}: no click was answered`);
      assert.ok(at(clicks, 0.95) < limits.clickMs, `${name}: one of twenty clicks was answered after ${at(clicks, 0.95)} ms or more`);
      assert.ok(Math.max(...age) < limits.ageMs, `${name}: what it showed was ${Math.max(...age)} ms old`);
      assert.ok(heaps.at(-1) < limits.growth * heaps[0] + 10e6, `${name}: the heap had ${heaps} bytes`);
      assert.ok(Math.max(...heaps) < limits.heap, `${name}: the heap had ${heaps} bytes`);
    }
  },
  { timeout: 120_000 + pages.length * (seconds + 60) * 1_000 },
);

async function measure({ visitor, page, frames, gateway }) {
  await page.locator('tr[data-key]').first().waitFor({ timeout: 60_000 });
  if (slowdown > 1) await (await visitor.context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  await page.waitForTimeout(settleMs);
  await page.evaluate(() => globalThis.take());
  await frames.take(page);
  const sent = await sentBytes(gateway);
  const began = performance.now();
  const taken = { clicks: [], age: [], heaps: [], frames: 0, over50: 0, longest: 0, blocked: 0 };
  const take = async () => {
    const { clicks, age, blocked } = await page.evaluate(() => globalThis.take());
    const { count, over50, longest } = await frames.take(page);
    taken.clicks.push(...clicks);
    taken.age.push(...age);
    taken.blocked += blocked;
    taken.frames += count;
    taken.over50 += over50;
    taken.longest = Math.max(taken.longest, longest ?? 0);
  };
  taken.heaps.push(await heapBytes(visitor.context, page));
  for (let marks = 1, clicks = 1; performance.now() - began < seconds * 1_000; clicks++) {
    await page.mouse.click(200, 60 + 20 * (clicks % 20)); // a row
    await page.waitForTimeout(Math.max(0, began + clicks * clickMs - performance.now()));
    if (performance.now() - began < marks * markMs) continue;
    marks++;
    await take();
    taken.heaps.push(await heapBytes(visitor.context, page));
    await frames.take(page); // that of the collection
  }
  await take();
  const took = (performance.now() - began) / 1_000;
  return { ...taken, seconds: took, rate: await page.evaluate(() => globalThis.rate()), sent: ((await sentBytes(gateway)) - sent) / took };
}

async function sentBytes(gateway) {
  const text = await (await fetch(`${gateway.operations}/metrics`)).text();
  return [...text.matchAll(/^watchtide_sent_bytes_total\{.*\} (.+)$/gm)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}

const at = (all, share) => all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(share * all.length))];

function report(results) {
  if (!results.length) return;
  const ms = (number) => `${Math.round(number)} ms`;
  const megabytes = (number) => (number / 1e6).toFixed(number < 1e7 ? 1 : 0);
  console.log(`\n${nodes} nodes of ${bytes} bytes, ${perSecond} changes per second, for ${Math.round(results[0].seconds)} s:\n`);
  printTable(
    ['', ...results.map(({ name }) => name)],
    [
      ['sent to it, in MB/s', ({ sent }) => megabytes(sent)],
      ['rate at the end', ({ rate }) => rate || '–'],
      ['frames over 50 ms, of all', ({ over50, frames }) => `${over50} of ${frames}`],
      ['longest frame', ({ longest }) => ms(longest)],
      ['tasks over 50 ms, in all, of each second', ({ blocked, seconds }) => ms(blocked / seconds)],
      ['a click is drawn after: median', ({ clicks }) => ms(at(clicks, 0.5))],
      ['95th percentile', ({ clicks }) => ms(at(clicks, 0.95))],
      ['age of what is shown: median', ({ age }) => ms(at(age, 0.5))],
      ['greatest', ({ age }) => ms(Math.max(...age))],
      ['heap after collections, in MB', ({ heaps }) => [heaps[0], Math.max(...heaps), heaps.at(-1)].map(megabytes).join(', ')],
    ].map(([title, of]) => [title, ...results.map(of)]),
  );
}
