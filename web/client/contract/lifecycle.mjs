// What a browser does to pages: it keeps them when they are left, loads them again, freezes them, and sets clocks. In
// Chromium and WebKitGTK, with real pages of the gateway's own origin; only Chromium freezes pages on request. What a page
// says is checked against what the watch holds.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { request as forward } from 'node:http';
import { Transform } from 'node:stream';
import { Front } from '../../dashboard/browser/stage/front.mjs';
import { Site } from '../../dashboard/browser/stage/site.mjs';
import { until } from '../../dashboard/browser/stage/until.mjs';
import { test } from '../../nodetest/only.mjs';
import { engines } from './browsers.mjs';
import { Place } from './place.mjs';

const [chromium] = engines;
const html = (script) =>
  `<!doctype html><link rel="icon" href="data:,"><title>Lifecycle</title><script>${clock}${soon}</script><script type="module">${script}</script>`;

// The ways to follow a watch: each makes tide.
const ways = {
  'a connection of its own': `import { watch } from '/dist/index.js';
    const tide = watch('/', { watches: ['notes'] });`,
  'an EventSource': `import { watch, eventSourceTransport } from '/dist/index.js';
    const tide = watch('/', { watches: ['notes'], transport: eventSourceTransport });`,
  'a worker that tabs share': `import { watchShared } from '/dist/shared.js';
    const tide = watchShared('/', { watches: ['notes'], worker: () => new SharedWorker('/worker.js', { type: 'module' }) });`,
  'a token': `import { watch } from '/dist/index.js';
    import { authenticated } from '/dist/auth.js';
    globalThis.upserts = [];
    const parse = (text) => {
      const event = JSON.parse(text);
      if (event.type === 'upsert') upserts.push(event.key);
      return event;
    };
    const getToken = ({ expired }) => issueToken(expired, globalThis.views?.at(-1).state);
    const tide = watch('/', { watches: ['notes'], parse, transport: authenticated({ getToken }) });`,
  'a leader among the tabs': `import { watchShared } from '/dist/shared.js';
    const tide = watchShared('/', { watches: ['notes'] });`,
};

// Keeps each view, and how the page came back.
const record = `
  globalThis.views = [];
  globalThis.store = tide.store('notes');
  store.subscribe(({ state, reason, resources }, { replaced }) =>
    views.push({ state, reason, replaced, rows: [...resources].map(([key, { value }]) => key + '=' + String(value.n).slice(0, 8)).sort().join() }));
  addEventListener('pageshow', ({ persisted }) => { globalThis.persisted = persisted; views.push({ state: 'back' }); });
  document.addEventListener('resume', () => views.push({ state: 'back' }));`;

// Date.now of a page or a worker with a clock that skew sets.
const clock = `{
  const now = Date.now.bind(Date);
  globalThis.skew = 0;
  Date.now = () => now() + skew;
}`;

// A stream that ends within a minute is a failure, and after four of them a page may wait for 30 s, longer than a test
// does. Here the random part of a wait is a quarter.
const soon = `{
  const random = Math.random;
  Math.random = () => random() / 4;
}`;

// The tabs share the worker, and its clock.
const worker = `import { serveTabs } from '/dist/shared.js';
  ${clock}${soon}
  new BroadcastChannel('clock').onmessage = ({ data }) => void (globalThis.skew = data);
  serveTabs('/');`;

/** A site with the client, a page for each way, and a gateway behind it. */
class Stage {
  static async open(t, { engine = chromium, heartbeat } = {}) {
    const stage = new Stage();
    stage.place = await Place.open([], heartbeat);
    t.after(() => stage.place.close());
    stage.front = new Front(() => ({ origin: stage.place.url.slice(0, -1) }));
    const site = await Site.start({ '/dist/': new URL('../dist/', import.meta.url).pathname }, (request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://site');
      if (stage.slow && pathname === '/v1/events') return stage.#pass(request, response);
      if (stage.renewals && request.method === 'PUT') return void response.writeHead(stage.renewals.push(pathname) && 404).end();
      if (pathname.startsWith('/v1/')) return stage.front.answer(request, response);
      if (pathname === '/worker.js') {
        return response.setHeader('Content-Type', 'text/javascript').end(worker);
      }
      const way = ways[searchParams.get('way')];
      response.setHeader('Content-Type', 'text/html').end(html(way ? way + record : ''));
    });
    t.after(() => site.stop());
    stage.origin = site.origin;
    stage.browser = await engine.launch(t);
    return stage;
  }

  // Passes the first stream on at 0.5 MB/s until its token has expired, whatever the buffers of sockets take, and all
  // others at 4 MB/s, so that the gateway has to wait for the page.
  #pass({ method, headers, url }, response) {
    const expired = this.slow.length === 0 ? Date.now() + shortMs : 0;
    const slow = new Transform({
      transform: (data, _, done) => setTimeout(() => done(null, data), data.length / (Date.now() < expired ? 500 : 4_000)),
      highWaterMark: 1 << 16,
    });
    const passed = forward(new URL(url, this.place.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(slow).pipe(response);
    });
    this.slow.push(headers['last-event-id']);
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    passed.end();
  }

  /** Opens a page that follows notes, and waits until it shows the rows. */
  async follow(way, rows) {
    const page = await this.browser.newPage();
    await page.goto(`${this.origin}/follow?way=${encodeURIComponent(way)}`);
    await this.shows(page, rows);
    return page;
  }

  async shows(page, rows) {
    const last = () => page.evaluate(() => globalThis.views?.at(-1));
    await until(`the page is in sync with ${rows}`, async () => {
      const view = await last();
      return view?.state === 'in_sync' && view.rows === rows;
    }).catch(async (error) => assert.fail(`${error.message}, last: ${JSON.stringify(await last())}`));
  }

  /** Sets the clock of a page, and that of the worker. */
  async setClock(page, skew) {
    await page.evaluate((skew) => {
      globalThis.skew = skew;
      const workers = new BroadcastChannel('clock');
      workers.postMessage(skew);
      workers.close();
    }, skew);
  }

  streams = () => this.front.asked('GET', '/v1/events');

  async write(key, n) {
    const headers = { Authorization: `Bearer ${this.place.token}` };
    const body = n === undefined ? {} : { body: JSON.stringify({ n }) };
    const url = `${this.place.url}v1/watches/notes/resources/${key}`;
    const { ok, status } = await fetch(url, { method: n === undefined ? 'DELETE' : 'PUT', headers, ...body });
    assert.ok(ok, `${key}: ${status}`);
  }

  /** Three rows become a=2, c=1. */
  async begin() {
    await this.write('a', 1);
    await this.write('b', 1);
  }

  async change() {
    await this.write('a', 2);
    await this.write('b');
    await this.write('c', 1);
  }
}

const before = 'a=1,b=1';
const after = 'a=2,c=1';

// Of a token that lasts so long, the client renews a stream after a third, and the gateway ends it after a half at the earliest.
const shortMs = 6_000;

/** Once it is back, a page is never in sync with rows that the watch no longer has, and shows rows all the time. */
async function assertHonest(page) {
  const views = await page.evaluate(() => views);
  const back = views.slice(views.findLastIndex(({ state }) => state === 'back') + 1);
  for (const { state, rows } of back) assert.ok(state !== 'in_sync' || rows === after, JSON.stringify(views));
  for (const { state, rows } of views.slice(views.findIndex(({ state }) => state === 'in_sync'))) {
    assert.ok(state === 'back' || rows === before || rows === after, `not a state of the watch: ${JSON.stringify(views)}`);
  }
  return back;
}

const options = ({ missing }) => ({ skip: missing, timeout: 120_000 });
const { 'a token': _, ...plain } = ways;
const shared = ['a worker that tabs share', 'a leader among the tabs'];

/** Defines a scenario for each browser. */
function inEach(title, play) {
  for (const engine of engines) {
    const name = engine === chromium ? title : `${title}, in ${engine.name}`;
    test(name, options(engine), async (t) => play(await Stage.open(t, { engine }), engine));
  }
}

for (const way of Object.keys(plain)) {
  inEach(`a page that was left is shown again as it was, with ${way}`, async (stage) => {
    await stage.begin();
    const page = await stage.follow(way, before);
    const alone = stage.streams().length;
    await page.goto(`${stage.origin}/elsewhere`);
    await stage.change();
    await page.goBack();
    await stage.shows(page, after);
    assert.equal(await page.evaluate(() => globalThis.persisted), true, 'the browser has kept the page');
    const back = await assertHonest(page);
    assert.ok(!back.some(({ replaced }) => replaced), 'it has resumed, without a snapshot');
    assert.equal(stage.streams().length, alone + 1);
    assert.notEqual(stage.streams().at(-1).position, '');
  });

  test(`a page is frozen and runs again, with ${way}`, options(chromium), async (t) => {
    const stage = await Stage.open(t);
    await stage.begin();
    const page = await stage.follow(way, before);
    const devtools = await page.createCDPSession();
    const set = (state) => devtools.send('Page.setWebLifecycleState', { state });
    await set('frozen');
    await stage.change();
    await set('active');
    await stage.shows(page, after);
    const back = await assertHonest(page);
    assert.ok(!back.some(({ replaced }) => replaced), 'it has resumed, without a snapshot');
    const calm = stage.streams().length;
    for (let i = 0; i < 20; i++) for (const state of ['frozen', 'active']) await set(state);
    await stage.write('a', 3);
    await stage.shows(page, 'a=3,c=1');
    assert.ok(stage.streams().length <= calm + 4, `${stage.streams().length - calm} streams for 20 times`);
  });

  inEach(`a page is loaded again, with ${way}`, async (stage) => {
    await stage.begin();
    const page = await stage.follow(way, before);
    await stage.change();
    await stage.shows(page, after);
    for (let n = 3; n < 6; n++) {
      await page.reload();
      await stage.write('a', n);
      await stage.shows(page, `a=${n},c=1`);
    }
  });

  inEach(`the clock is set while a page follows, with ${way}`, async (stage) => {
    await stage.begin();
    const page = await stage.follow(way, before);
    let n = 1;
    for (const skew of [3_600_000, -3_600_000, 86_400_000 * 3650, 0]) {
      const asked = stage.front.requests.length;
      await stage.setClock(page, skew);
      await stage.write('a', ++n);
      await stage.shows(page, `a=${n},b=1`);
      await stage.place.kill();
      await until('the loss is said', () => page.evaluate(() => views.at(-1).state !== 'in_sync'));
      await stage.place.start();
      await stage.begin(); // its store is in memory
      await stage.shows(page, before);
      assert.ok(stage.front.requests.length - asked <= 20, `${stage.front.requests.length - asked} requests`);
    }
  });
}

for (const way of shared) {
  test(`the first of two tabs is frozen, and the other one goes on, with ${way}`, options(chromium), async (t) => {
    const stage = await Stage.open(t);
    await stage.begin();
    const [first, second] = [await stage.follow(way, before), await stage.follow(way, before)];
    const devtools = await first.createCDPSession();
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await stage.change();
    await stage.shows(second, after);
    await devtools.send('Page.setWebLifecycleState', { state: 'active' });
    await stage.shows(first, after);
    await assertHonest(first);
    await stage.write('a', 3);
    for (const page of [first, second]) await stage.shows(page, 'a=3,c=1');
  });

  inEach(`the first of two tabs is left and comes back, and the other one goes on, with ${way}`, async (stage) => {
    await stage.begin();
    const [first, second] = [await stage.follow(way, before), await stage.follow(way, before)];
    await first.goto(`${stage.origin}/elsewhere`);
    await stage.change();
    await stage.shows(second, after);
    await first.goBack(); // kept, or loaded again
    await stage.shows(first, after);
    await assertHonest(first);
    await stage.write('a', 3);
    for (const page of [first, second]) await stage.shows(page, 'a=3,c=1');
  });

  inEach(`the first of two tabs is loaded again, and the gateway is away, with ${way}`, async (stage) => {
    await stage.begin();
    const [first, second] = [await stage.follow(way, before), await stage.follow(way, before)];
    await first.reload();
    await stage.shows(first, before);
    await stage.change();
    for (const page of [first, second]) await stage.shows(page, after);
    await stage.place.kill();
    for (const page of [first, second]) {
      await until('the loss is said', () => page.evaluate(() => views.at(-1).state !== 'in_sync'));
    }
    await stage.place.start();
    await stage.begin(); // its store is in memory
    for (const page of [first, second]) await stage.shows(page, before);
  });
}

for (const [name, refused] of Object.entries({ 'and is renewed': false, 'and another replica answers the renewal': true })) {
  test(`a token ends during a catch-up, ${name}`, options(chromium), async (t) => {
    const stage = await Stage.open(t, { heartbeat: '5s' }); // the page is busy
    await stage.begin();
    const page = await stage.browser.newPage();
    const asked = [];
    await page.exposeFunction('issueToken', (expired, state) => {
      asked.push({ expired, state });
      return stage.place.guard.jwt('ada', stage.slow && asked.length < 3 ? shortMs : 600_000);
    });
    await page.goto(`${stage.origin}/follow?way=a%20token`);
    await stage.shows(page, before);

    stage.slow = [];
    if (refused) stage.renewals = [];
    const keys = Array.from({ length: 400 }, (_, i) => `many/${i}`);
    await page.goto(`${stage.origin}/elsewhere`);
    for (const key of keys) await stage.write(encodeURIComponent(key), randomBytes(48_000).toString('base64'));
    await page.evaluate(() => history.back());
    await until('the page is back', () => page.evaluate(() => globalThis.persisted).catch(() => false));
    const synced = () => page.evaluate(() => views.at(-1).state === 'in_sync' && { views, upserts });
    const { views, upserts } = await until('all rows are there', synced, 60_000);

    assert.deepEqual(
      asked.slice(1).map(({ state }) => state === 'in_sync'),
      asked.slice(1).map(() => false),
      'each token was asked for before the end of the catch-up',
    );
    assert.ok(asked.length > 2, 'the token was renewed');
    const back = views.slice(views.findLastIndex(({ state }) => state === 'back') + 1);
    const [full, ...others] = back.filter(({ state }) => state === 'in_sync').map(({ rows }) => rows.split(',').length);
    assert.deepEqual([full, others], [keys.length + 2, []], 'in sync once, with all rows');
    assert.ok(!back.some(({ replaced }) => replaced), 'without a snapshot');
    assert.deepEqual([...new Set(upserts)].sort(), ['a', 'b', ...keys].sort());
    if (!refused) assert.equal(upserts.length, keys.length + 2, 'each row came once');
    assert.equal(stage.slow.length, refused ? 2 : 1, 'streams of the catch-up');
  });
}
