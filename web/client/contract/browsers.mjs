import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { Site } from '../../dashboard/browser/stage/site.mjs';

const package_ = fileURLToPath(new URL('..', import.meta.url));
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-sync'];

/** The browsers: how each is started, or why it is missing. Both are driven by WebDriver BiDi. */
export const browsers = [
  browser('Chromium', process.env.CHROMIUM, ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'], {
    browser: 'chrome',
    args: quiet,
  }),
  browser('Firefox', process.env.FIREFOX, ['/usr/bin/firefox-esr', '/usr/bin/firefox'], { browser: 'firefox' }),
];

function browser(name, chosen, usual, options) {
  const executablePath = [chosen, ...usual].find((path) => path && existsSync(path));
  if (!executablePath) return { name, missing: `${name} is not installed: apt-get install ${usual[0].split('/').at(-1)}` };
  return { name, launch: () => puppeteer.launch({ protocol: 'webDriverBiDi', headless: true, executablePath, ...options }) };
}

/** A web server for the page with the scenarios, which is of another origin than the gateway. */
export function startSite() {
  return Site.start({ '/contract/': `${package_}contract/`, '/dist/': `${package_}dist/` }, (_request, response) => {
    const page = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/contract/page.js"></script>';
    response.setHeader('Content-Type', 'text/html').end(page);
  });
}

/** Plays the scenarios in a page of a browser. */
export async function playIn(browser, site, place) {
  const page = await browser.newPage();
  await page.goto(site.origin);
  await page.waitForFunction('globalThis.playAll !== undefined');
  return page.evaluate((data) => globalThis.playAll(data), place.data);
}
