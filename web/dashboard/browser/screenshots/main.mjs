import { execFile } from 'node:child_process';
import { mkdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startChromium } from '../stage/chromium.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { enter, scenes } from '../stage/pages.mjs';
import { until } from '../stage/until.mjs';
import { Upstream } from '../stage/upstream.mjs';
import { Visitor } from '../stage/visitor.mjs';

const folder = fileURLToPath(new URL('../../../../docs/images/', import.meta.url));
const perSecond = 40;
const secondsOfHistory = 20; // so that charts have something to show

const sizes = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};

const wanted = process.argv.slice(2); // names of scenes; none: all

await mkdir(folder, { recursive: true });
const upstream = await Upstream.start();
await upstream.fill('services', 5_000);
await upstream.fill('nodes', 50);
await upstream.change('services', perSecond);
await upstream.change('nodes', 2);
const gateway = await Gateway.start(upstream, { heartbeat: '15s' });
await gateway.put('notes', 'welcome', { text: 'The kettle is on.', by: 'Ada', pinned: true });
await gateway.put('notes', 'rota', { text: 'Grace has the pager until Friday.', by: 'Grace', pinned: false });
const chromium = await startChromium();

for (const [size, options] of Object.entries(sizes)) {
  for (const colorScheme of ['light', 'dark']) await shoot(size, colorScheme, options);
}

await chromium.stop();
await gateway.kill();
await upstream.stop();

async function shoot(size, colorScheme, options) {
  const visitor = await Visitor.arrive(chromium.browser, { colorScheme, reducedMotion: 'no-preference', ...options });
  for (const scene of scenes.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const tab = await visitor.open(`${gateway.origin}/${scene.hash}`);
    await enter(scene, tab);
    await history();
    const file = `${folder}${scene.name}-${size}-${colorScheme}.png`;
    await tab.page.screenshot({ path: file });
    await shrink(file);
    console.log(`${file}: ${((await stat(file)).size / 1000).toFixed(0)} kB`);
    await tab.page.close();
  }
  await visitor.leave();
}

/** Returns when so many changes have come that charts are not empty. */
async function history() {
  const newest = async () => Number((await gateway.watch('services')).revision);
  const began = await newest();
  await until('history', async () => await newest() > began + perSecond * secondsOfHistory, 2_000 * secondsOfHistory);
}

/** With a palette it is a third of the size, and looks the same. */
async function shrink(file) {
  await promisify(execFile)('pngquant', ['--force', '--skip-if-larger', '--strip', '--speed', '1', '--output', file, '--', file])
    .catch((error) => { if (error.code === 'ENOENT') console.warn('pngquant is missing: the pictures stay large'); });
}
