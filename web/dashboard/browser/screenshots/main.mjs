import { execFile } from 'node:child_process';
import { mkdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startChromium } from '../stage/chromium.mjs';
import { Gateway } from '../stage/gateway.mjs';
import { Guard } from '../stage/guard.mjs';
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
await upstream.fill('services', 600); // few enough for some visible ones to change
await upstream.fill('nodes', 50);
await upstream.change('services', perSecond);
await upstream.change('nodes', 2);
const gateway = await Gateway.start(upstream, { heartbeat: '15s' });
await gateway.put('notes', 'welcome', { text: 'The kettle is on.', by: 'Ada', pinned: true });
await gateway.put('notes', 'rota', { text: 'Grace has the pager until Friday.', by: 'Grace', pinned: false });
const guarded = await Gateway.start(upstream, { guard: await Guard.of('ada'), allow: { services: [{ role: 'user', read: 'true' }] } });
const login = { name: 'login', hash: '#/', shows: '.login-form', pose: () => {}, at: guarded };
const chromium = await startChromium();

for (const [size, options] of Object.entries(sizes)) {
  for (const colorScheme of ['light', 'dark']) await shoot(size, colorScheme, options);
}

await chromium.stop();
await gateway.kill();
await guarded.kill();
await upstream.stop();

/** Shoots all scenes at once, so that their charts fill at the same time. */
async function shoot(size, colorScheme, options) {
  const visitor = await Visitor.arrive(chromium.browser, { colorScheme, ...options });
  visitor.tolerate(/status of 401/); // before the login
  const tabs = new Map();
  for (const scene of [...scenes, login].filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const tab = await visitor.open(`${(scene.at ?? gateway).origin}/${scene.hash}`);
    await enter(scene, tab);
    tabs.set(scene.name, tab);
  }
  await history();
  for (const [name, tab] of tabs) {
    if (name === 'detail') await change(tab);
    const file = `${folder}${name}-${size}-${colorScheme}.png`;
    await tab.page.screenshot({ path: file });
    await shrink(file);
    console.log(`${file}: ${((await stat(file)).size / 1000).toFixed(0)} kB`);
  }
  await visitor.leave();
}

/** Changes the resource whose detail is open, so that there is a difference to see. */
async function change(tab) {
  await upstream.change('services', 0); // or the next one comes before this is seen
  const key = await tab.detail.getAttribute('data-key');
  const { value } = await (await fetch(`${gateway.origin}/v1/watches/services/resources/${key}`)).json();
  for (const state of ['warning', 'passing']) {
    const cpu = state === 'warning' ? 3.97 : 1.12;
    await upstream.put('services', key, { ...value, state, cpu, updated: new Date().toISOString() });
    await tab.detail.getByRole('tree').getByText(String(cpu)).waitFor();
  }
  await upstream.change('services', perSecond);
}

/** Waits until there are enough changes for the charts. */
async function history() {
  const newest = async () => Number((await gateway.watch('services')).revision);
  const began = await newest();
  await until('history', async () => (await newest()) > began + perSecond * secondsOfHistory, 2_000 * secondsOfHistory);
}

/** Converts a picture to a palette: a third of the size, without a visible difference. */
async function shrink(file) {
  await promisify(execFile)('pngquant', [
    '--force',
    '--skip-if-larger',
    '--strip',
    '--speed',
    '1',
    '--nofs',
    '--output',
    file,
    '32',
    '--',
    file,
  ]).catch((error) => {
    if (error.code === 'ENOENT') console.warn('pngquant is missing: the pictures stay large');
  });
}
