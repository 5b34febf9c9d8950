import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { Site } from '../../dashboard/browser/stage/site.mjs';
import { until } from '../../dashboard/browser/stage/until.mjs';
import { WebKit } from './webkit.mjs';

const packageFolder = fileURLToPath(new URL('..', import.meta.url));
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-sync'];
const chromiums = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const libraries = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }[process.arch];
const webkitPrograms = [`/usr/lib/${libraries}/webkit2gtk-4.1/MiniBrowser`, '/usr/bin/WebKitWebDriver', '/usr/bin/xvfb-run'];

/**
 * The browsers: how each plays the scenarios in a page of site, or why it is missing. Chromium and Firefox are driven by
 * WebDriver BiDi.
 */
export const browsers = [
  bidi('Chromium', 'chrome', chromiums, quiet),
  bidi('Firefox', 'firefox', [process.env.FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox'], []),
  webkit(),
];

/** Starts Chromium with its own protocol, for what WebDriver BiDi lacks. */
export async function openChromium(t) {
  const executablePath = chromiums.find((path) => path && existsSync(path));
  const program = await puppeteer.launch({ headless: true, executablePath, args: quiet });
  t.after(() => program.close());
  return program;
}

/** The browsers that have several pages at once, which share what pages of one origin do. */
export const engines = [
  { ...browsers[0], launch: openChromium },
  { ...browsers[2], launch: openWebKit },
];

async function openWebKit(t) {
  const program = await WebKit.launch(webkitPrograms[0]);
  t.after(() => program.close());
  return program;
}

function bidi(name, browser, programs, args) {
  const executablePath = programs.find((path) => path && existsSync(path));
  if (!executablePath) return { name, missing: `${name} is not installed: apt-get install ${programs[1].split('/').at(-1)}` };
  const open = async (t) => {
    const program = await puppeteer.launch({ browser, protocol: 'webDriverBiDi', headless: true, executablePath, args });
    t.after(() => program.close());
    return program.newPage();
  };
  return {
    name,
    open,
    async play(t, site, place) {
      const page = await open(t);
      await page.goto(site.origin);
      await page.waitForFunction('globalThis.playAll !== undefined');
      return page.evaluate((data) => globalThis.playAll(data), place.data);
    },
  };
}

function webkit() {
  const name = 'WebKitGTK';
  if (!webkitPrograms.every((path) => existsSync(path)))
    return { name, missing: `${name} is not installed: apt-get install webkit2gtk-driver xvfb xauth` };
  return {
    name,
    async play(t, site, place) {
      const program = await openWebKit(t);
      await program.goto(site.origin);
      await until('the page is ready', () => program.exists('playAll'));
      return program.call('playAll', place.data);
    },
  };
}

/** A web server for the page with the scenarios, which is of another origin than the gateway. */
export function startSite() {
  return Site.start({ '/contract/': `${packageFolder}contract/`, '/dist/': `${packageFolder}dist/` }, (_request, response) => {
    const page = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/contract/page.js"></script>';
    response.setHeader('Content-Type', 'text/html').end(page);
  });
}
