import assert from 'node:assert/strict';
import { pages } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

const phone = [{ width: 390, height: 844 }];
const screens = [
  { width: 1280, height: 800 },
  { width: 1440, height: 900 },
  { width: 2560, height: 1300 },
];

tour(phone, { isMobile: true, hasTouch: true });
tour(screens, {});

/** Compares each page, opened by itself, with the same page after a visit to all others, in windows of all sizes. */
function tour(sizes, options) {
  scenario(
    `a page looks the same after a tour of all pages, ${sizes.map(({ width }) => width).join(', ')} px wide`,
    async (stage) => {
      const gateway = await shared.gateway();
      const visitor = await stage.visitor({ viewport: sizes[0], colorScheme: 'light', reducedMotion: 'reduce', ...options });
      const fresh = new Map();
      for (const scene of pages) {
        const { page } = await visitor.open(`${gateway.origin}/${scene.hash}`);
        fresh.set(scene.name, await inAll(page, sizes, () => styles(page, scene)));
        await page.close();
      }
      const { page } = await visitor.open(`${gateway.origin}/${pages.at(-1).hash}`);
      for (const scene of pages) {
        await go(page, scene);
      }
      for (const scene of pages) {
        await go(page, scene);
        const toured = await inAll(page, sizes, async (width) => {
          const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.equal(excess, 0, `${scene.name} is wider than a window of ${width} px`);
          return styles(page, scene);
        });
        for (const [i, { width }] of sizes.entries()) {
          assert.deepEqual(differences(fresh.get(scene.name)[i], toured[i]), [], `${scene.name}, ${width} px wide`);
        }
      }
    },
    { timeout: 120_000 },
  );
}

/** Calls look in a window of each size, and returns its results. */
async function inAll(page, sizes, look) {
  const seen = [];
  for (const size of sizes) {
    await page.setViewportSize(size);
    seen.push(await look(size.width));
  }
  return seen;
}

scenario('a style that leaks is found', async (stage) => {
  const gateway = await shared.gateway();
  const { page } = await (await stage.visitor()).open(`${gateway.origin}/${pages[1].hash}`);
  const before = await styles(page, pages[1]);
  assert.deepEqual(differences(before, await styles(page, pages[1])), []);
  await page.evaluate(() => {
    document.querySelector('main td').style.letterSpacing = '1px';
  });
  assert.match(String(differences(before, await styles(page, pages[1]))), /main.* td.*: letter-spacing: normal, then 1px/);
});

async function go(page, { hash, shows }) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, hash);
  await page.locator(shows).first().waitFor();
}

/**
 * Returns the computed styles of a page, once it is complete: by the place of the elements, with
 * their tags and classes, so that elements that are alike count once.
 */
async function styles(page, { shows }) {
  await page.locator(shows).first().waitFor();
  await page.mouse.move(0, 0);
  return new Map(await page.evaluate(computed));
}

// Runs in the page. What depends on the amount of data, or on the moment, is left out; margins
// are as the style sheets state them, because the layout turns auto into the room that is left.
function computed() {
  const varies =
    /^(width|height|aspect-ratio|block-size|inline-size|(perspective|transform)-origin|transform|grid-template-(columns|rows)|top|left|right|bottom|inset.*|margin-(block|inline).*|animation.*|--.*|d|x|y)$/;
  const place = (element) => {
    if (element === document.body) return 'body';
    const classes = [...element.classList].sort().map((name) => `.${name}`);
    const data = ['state', 'severity', 'hue', 'freshness', 'type', 'active', 'near'].filter((name) => name in element.dataset);
    const set = ['aria-selected', 'aria-current', 'aria-pressed', 'aria-sort'].filter((name) => element.hasAttribute(name));
    const own = `${element.localName}${classes.join('')}${data.map((name) => `[${name}=${element.dataset[name]}]`).join('')}${set.map((name) => `[${name}=${element.getAttribute(name)}]`).join('')}`;
    const last = element.parentElement && element === element.parentElement.lastElementChild ? ':last' : '';
    return `${place(element.parentElement)} > ${own}${last}`;
  };
  const names = [...getComputedStyle(document.body)].filter((name) => !varies.test(name)); // custom properties are left out, so all elements have these
  const all = new Map();
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('.u-wrap, [hidden], script') || all.has(place(element)) || element.hasAttribute('style')) continue;
    const style = getComputedStyle(element);
    const stated = element.computedStyleMap();
    const value = (name) => (name.startsWith('margin-') ? String(stated.get(name)) : style.getPropertyValue(name));
    all.set(place(element), Object.fromEntries(names.map((name) => [name, value(name)])));
  }
  return [...all];
}

/** Returns what differs between elements that are there in both. */
function differences(before, after) {
  const out = [];
  for (const [place, style] of after) {
    const known = before.get(place);
    if (!known) continue;
    for (const name of Object.keys(style)) {
      if (known[name] !== style[name]) out.push(`${place}: ${name}: ${known[name]}, then ${style[name]}`);
    }
  }
  return out;
}
