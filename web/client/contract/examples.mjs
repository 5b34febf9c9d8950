// Opens the examples of the package in Chromium and WebKitGTK, as pages of the gateway's own origin: what only a browser has,
// such as IndexedDB, cookies and reloads, is real.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { request as forward } from 'node:http';
import { Site } from '../../dashboard/browser/stage/site.mjs';
import { until } from '../../dashboard/browser/stage/until.mjs';
import { test } from '../../nodetest/only.mjs';
import { handler } from '../examples/server-rendering.js';
import { browsers, engines, openChromium } from './browsers.mjs';
import { Place } from './place.mjs';

const [chromium] = browsers;
const names = /'@watchtide\/client(?:\/([\w-]+))?'/g;

/** A module with the addresses of the package in place of its names, as a bundler would write it. */
async function moduleOf(path) {
  const code = await readFile(new URL(path, import.meta.url), 'utf8');
  return code.replace(names, (_, entry = 'index') => `'/dist/${entry.replace('-', '_')}.js'`);
}

const scripts = {
  '/notes.js': `import { follow } from '/examples/server-rendering.js';
    globalThis.followed = follow('/', document);`,
  '/stored.js': `import * as auth from '/dist/auth.js';
    import { followStored } from '/examples/stored-rows.js';
    const rows = ({ resources }) => [...resources].map(([key, { value }]) => key + '=' + value.text);
    globalThis.auth = auth;
    globalThis.begun = followStored('/', 'notes').then((followed) => {
      const seen = [];
      followed.store.subscribe((view) => seen.push({ state: view.state, rows: rows(view) }));
      globalThis.followed = Object.assign(followed, { seen });
    });
    globalThis.kept = () => new Promise((resolve, reject) => {
      const open = indexedDB.open('watchtide', 1);
      open.onerror = reject;
      open.onsuccess = () => {
        const all = open.result.transaction('snapshots').objectStore('snapshots').getAllKeys();
        all.onsuccess = () => resolve(all.result);
      };
    });`,
};

// Keeps what streams ask for and get.
const spy = `
  const { fetch } = globalThis;
  globalThis.streams = [];
  globalThis.fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (!String(url).includes('/v1/events')) return response;
    const stream = { position: init.headers['Last-Event-ID'], text: '' };
    streams.push(stream);
    const [ours, theirs] = response.body.tee();
    ours.pipeThrough(new TextDecoderStream()).pipeTo(new WritableStream({ write: (text) => { stream.text += text; } })).catch(() => {});
    return new Response(theirs, response);
  };`;

const pages = {
  '/stored': `<!doctype html><title>Stored</title><script>{${spy}}</script><script type="module" src="/stored.js"></script>`,
};

/** A site with the pages of the examples, and the gateway behind it, so that both have one origin. */
class Stage {
  static async open(t) {
    const stage = new Stage();
    stage.place = await Place.open();
    t.after(() => stage.place.close());
    const rendered = handler(stage.place.url);
    const site = await Site.start({ '/dist/': new URL('../dist/', import.meta.url).pathname }, (request, response) => {
      const { pathname } = new URL(request.url, 'http://site');
      if (pathname.startsWith('/v1/')) return stage.#pass(request, response);
      if (pathname === '/') return rendered(request, response);
      stage.#answer(pathname, response);
    });
    t.after(() => site.stop());
    stage.origin = site.origin;
    return stage;
  }

  #pass(request, response) {
    const { method, headers, url } = request;
    const passed = forward(new URL(url, this.place.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  }

  async #answer(pathname, response) {
    if (pages[pathname]) return response.setHeader('Content-Type', 'text/html').end(pages[pathname]);
    const script = pathname.startsWith('/examples/') ? await moduleOf(`..${pathname}`) : scripts[pathname];
    if (script === undefined) return response.writeHead(404).end();
    response.setHeader('Content-Type', 'text/javascript').end(script);
  }

  async put(key, text) {
    const headers = { Authorization: `Bearer ${this.place.token}` };
    const url = `${this.place.url}v1/watches/notes/resources/${key}`;
    const { ok, status } = await fetch(url, { method: 'PUT', headers, body: JSON.stringify({ text }) });
    assert.ok(ok, `PUT ${key}: ${status}`);
  }
}

const resumed = ([{ position, text }]) => position !== undefined && text.includes('"resumed":true') && !text.includes('"type":"reset"');

const options = { skip: chromium.missing, timeout: 120_000 };

test('a page that a server has rendered resumes in a browser', options, async (t) => {
  const stage = await Stage.open(t);
  const page = await chromium.open(t);
  await page.evaluateOnNewDocument(spy);
  await stage.put('a', 'milk & <b>tea</b>');
  const html = await (await fetch(stage.origin)).text();
  assert.match(html, /<li>a: .*milk &#38; &#60;b&#62;tea/, 'without scripts the rows are there');
  await page.goto(stage.origin);
  const items = () => page.evaluate(() => [...document.querySelectorAll('li')].map(({ textContent }) => textContent));
  assert.deepEqual(await items(), ['a: {"text":"milk & <b>tea</b>"}']);
  await until('the stream is there', () => page.evaluate(() => streams[0]?.text.includes('end_of_snapshot')));
  await stage.put('b', 'bread');
  await until('the change is shown', async () => (await items()).length === 2);
  assert.ok(resumed(await page.evaluate(() => streams)), 'it has resumed without a snapshot');
});

for (const { name, missing, launch } of engines) {
  test(`rows are kept in the IndexedDB of ${name}, for one user`, { ...options, skip: missing }, async (t) => {
    const stage = await Stage.open(t);
    const page = await (await launch(t)).newPage();
    const { token, user } = stage.place;
    await stage.put('a', 'milk');
    const visit = async (as) => {
      await page.goto(`${stage.origin}/stored`);
      await until('the page is ready', () => page.evaluate('globalThis.begun !== undefined'));
      if (!as) return page.evaluate('begun.then(() => {})');
      await page.evaluate((secret) => auth.beginSession('/', secret), as);
      await visit();
    };
    const synced = () => until('it is in sync', () => page.evaluate(() => followed.seen.at(-1).state === 'in_sync'));
    const leave = async () => {
      await synced();
      await page.evaluate(() => followed.close());
      await until('the rows are kept', async () => (await page.evaluate(() => kept())).length === 1);
    };

    await visit(user);
    await leave();
    const [[tag]] = await page.evaluate(() => kept());
    assert.ok(tag, 'they are kept under the tag of the user');

    await stage.put('b', 'tea');
    await visit();
    assert.deepEqual(await page.evaluate(() => followed.seen[0]), { state: 'stale', rows: ['a=milk'] });
    await synced();
    assert.deepEqual((await page.evaluate(() => followed.seen.at(-1))).rows, ['a=milk', 'b=tea']);
    assert.ok(resumed(await page.evaluate(() => streams)), 'it has resumed without a snapshot');
    await leave();

    await visit(token);
    assert.deepEqual((await page.evaluate(() => followed.seen[0])).rows, [], 'the next user sees nothing of them');
    await leave();
    assert.notEqual((await page.evaluate(() => kept()))[0][0], tag);

    await visit();
    await page.evaluate(() => auth.endSession('/'));
    await until('the rows are erased', async () => (await page.evaluate(() => kept())).length === 0);
  });
}

test('a browser that has no room for the rows', options, async (t) => {
  const stage = await Stage.open(t);
  const page = await (await openChromium(t)).newPage();
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(`uncaught: ${error.message}`));
  await page.goto(`${stage.origin}/stored`);
  await page.evaluate((secret) => auth.beginSession('/', secret), stage.place.user);
  const devtools = await page.createCDPSession();
  const visit = async (rows) => {
    await page.goto(`${stage.origin}/stored`);
    await page.waitForFunction('globalThis.followed !== undefined');
    await until('it is in sync', () =>
      page.evaluate((rows) => followed.seen.at(-1).state === 'in_sync' && followed.seen.at(-1).rows.length === rows, rows),
    );
    await page.evaluate(() => followed.close());
  };
  // Chromium remembers for a while that there was room, so there is none from the beginning.
  await devtools.send('Storage.overrideQuotaForOrigin', { origin: stage.origin, quotaSize: 10_000 });
  await stage.put('a', 'x'.repeat(500_000));
  await visit(1);
  await until('it is said', () => said.some((text) => text.includes('QuotaExceededError')));
  assert.equal((await page.evaluate(() => kept())).length, 0);
  await visit(1);
  assert.deepEqual((await page.evaluate(() => followed.seen[0])).rows, []);

  await devtools.send('Storage.overrideQuotaForOrigin', { origin: stage.origin });
  await until('there is room, and the rows are kept', async () => {
    await visit(1);
    return (await page.evaluate(() => kept())).length === 1;
  });
  assert.deepEqual(
    said.filter((text) => text.startsWith('uncaught')),
    [],
  );
});
