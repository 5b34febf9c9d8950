// A client that comes back to a gateway with another order of revisions is sent what differs, and nothing else. In Chromium,
// with a real gateway that is killed, and started again with other content.
import assert from 'node:assert/strict';
import { Front } from '../../dashboard/browser/stage/front.mjs';
import { Site } from '../../dashboard/browser/stage/site.mjs';
import { until } from '../../dashboard/browser/stage/until.mjs';
import { test } from '../../nodetest/only.mjs';
import { browsers, openChromium } from './browsers.mjs';
import { Place } from './place.mjs';

const [{ missing }] = browsers;
const rows = 300;
const backoffMs = 60_000; // a client waits for up to 30 s after failures
const digestPath = '/v1/watches/notes/digests/';
const nowhere = { origin: 'http://127.0.0.1:1' };

const page = `<!doctype html><link rel="icon" href="data:,"><title>Digests</title><script type="module">
  import { snapshot, watch } from '/dist/index.js';
  globalThis.views = [];
  globalThis.resets = [];
  globalThis.repaired = [];
  const parse = (text) => {
    const event = JSON.parse(text);
    if (event.type === 'reset') resets.push(event.reason);
    return event;
  };
  const options = { parse, onVerify: (_, { repaired: n }) => repaired.push(n) };
  globalThis.follow = (initial) => {
    globalThis.tide?.close();
    globalThis.tide = watch('/', { watches: [{ watch: 'notes', initial }], ...options });
    globalThis.store = tide.store('notes');
    store.subscribe(({ state, reason, resources }) => views.push([state, resources.size, reason]));
  };
  globalThis.again = (evicted) => {
    const kept = snapshot(store);
    follow({ ...kept, resources: kept.resources.filter(({ key }) => !evicted.includes(key)) });
  };
  follow();
</script>`;

class Stage {
  /** The bytes of answers below /v1/ since the last restart. */
  bytes = 0;
  /** What happens to a request about a digest; undefined: nothing. */
  trouble = undefined;
  #up = true;

  static async open(t) {
    const stage = new Stage();
    stage.place = await Place.open([], '15s'); // a stream that is cut off for its silence is a failure to verify
    t.after(() => stage.place.close());
    stage.front = new Front(() => (stage.#up ? { origin: stage.place.url.slice(0, -1) } : nowhere));
    const site = await Site.start({ '/dist/': new URL('../dist/', import.meta.url).pathname }, (request, response) => {
      if (!request.url.startsWith('/v1/')) return response.setHeader('Content-Type', 'text/html').end(page);
      if (stage.trouble?.(request, response)) return undefined;
      const { write } = response;
      response.write = (data, ...more) => {
        stage.bytes += data.length;
        return write.call(response, data, ...more);
      };
      return stage.front.answer(request, response);
    });
    t.after(() => site.stop());
    const browser = await openChromium(t);
    await stage.fill();
    stage.page = await browser.newPage();
    await stage.page.goto(site.origin);
    await stage.page.waitForFunction('globalThis.store !== undefined');
    await stage.shows(rows);
    return stage;
  }

  /** Starts the gateway again, with all rows except for a few. The client is a new one: others wait longer with each failure. */
  async restart(other = {}) {
    await this.page.evaluate(() => again([]));
    await this.shows(rows);
    this.#up = false;
    this.front.cut();
    await this.place.kill();
    await this.place.start();
    await this.fill(other);
    this.front.requests.length = 0;
    this.bytes = 0;
    this.#up = true;
    await this.page.evaluate(() => {
      views.length = resets.length = repaired.length = 0;
      tide.hurry();
    });
  }

  async fill(other = {}) {
    const all = { ...Object.fromEntries(Array.from({ length: rows }, (_, i) => [`note-${i}`, textOf(i)])), ...other };
    for (const [key, text] of Object.entries(all)) if (text) await this.put(key, text);
  }

  async put(key, text) {
    const headers = { Authorization: `Bearer ${this.place.token}` };
    const response = await fetch(`${this.place.url}v1/watches/notes/resources/${key}`, {
      method: 'PUT',
      headers,
      body: JSON.stringify({ text }),
    });
    assert.ok(response.ok, `${key}: ${response.status}`);
    await response.arrayBuffer();
  }

  seen = () =>
    this.page.evaluate(() => ({
      views,
      resets,
      repaired,
      state: store.state,
      size: store.resources.size,
      verified: store.view.verifiedAt,
    }));

  async shows(size) {
    await until(
      `${size} rows in sync`,
      async () => {
        const seen = await this.seen();
        return seen.state === 'in_sync' && seen.size === size;
      },
      backoffMs,
    ).catch(async (error) => assert.fail(`${error.message}: ${JSON.stringify(await this.seen()).slice(0, 2_000)}`));
    return this.seen();
  }

  digests = () => this.front.asked('GET', digestPath);
}

const textOf = (i) => `${i} ${'x'.repeat(300)}`;

test('a client verifies, and resumes by digest, in Chromium', { skip: missing, timeout: 480_000 }, async (t) => {
  const stage = await Stage.open(t);
  assert.ok((await stage.seen()).verified > 0, 'the first snapshot is verified');

  await t.test('a gateway that starts again with the same content: nothing is sent again', async () => {
    await stage.restart();
    const seen = await stage.shows(rows);
    assert.deepEqual([seen.resets, seen.repaired, stage.digests().length], [[], [0], 0]);
    assert.ok(stage.bytes < 3_000, `${stage.bytes} bytes`);
  });

  await t.test('with other content: what differs is sent, and the old rows are shown until then', async () => {
    await stage.restart({ 'note-3': '', 'note-7': 'other', new: 'new' });
    const seen = await stage.shows(rows);
    await until('the other note is shown', () => stage.page.evaluate(() => store.resources.get('note-7').value.text === 'other'));
    assert.deepEqual(await stage.page.evaluate(() => ['note-3', 'new'].map((key) => store.resources.has(key))), [false, true]);
    assert.deepEqual([seen.resets, seen.repaired], [[], [3]]);
    assert.ok(
      seen.views.every(([, size]) => size === rows),
      JSON.stringify(seen.views),
    );
    assert.ok(stage.bytes < 0.25 * rows * 330, `${stage.bytes} bytes`);
  });

  await t.test('rows that are held no more are read', async () => {
    await stage.page.evaluate(() => again(['note-8', 'note-80']));
    const seen = await stage.shows(rows);
    assert.deepEqual([seen.resets, seen.repaired.at(-1)], [[], 2]);
  });

  await t.test(
    '410: it comes back for another state; and after an answer that is cut off in the middle with its old position',
    async () => {
      let troubles = 0;
      stage.trouble = (request, response) => {
        if (!request.url.startsWith(digestPath) || troubles > 8) return false; // it asks eight times more, since another replica may answer
        troubles++;
        response
          .writeHead(410, { 'Content-Type': 'application/problem+json' })
          .end('{"type":"about:blank","title":"Gone","status":410,"detail":"gone"}');
        return true;
      };
      await stage.restart({ 'note-9': 'once more' });
      assert.deepEqual((await stage.shows(rows)).resets, []);
      const cut = stage.front.asked('GET', '/v1/events').map(({ position }) => position);
      assert.match(`${cut.slice(0, 2)}`, /^notes@(?!none)[^,]+,notes@none-0$/);
      troubles = 0;
      stage.trouble = (request, response) => {
        if (!request.url.includes('/keys?') || troubles > 0) return false;
        troubles++;
        response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '5000' });
        response.write('{"keys":[');
        setTimeout(() => response.destroy(), 50);
        return true;
      };
      await stage.restart({ 'note-10': 'and again' });
      assert.deepEqual([(await stage.shows(rows)).resets, troubles], [[], 1]);
      stage.trouble = undefined;
    },
  );

  await t.test('an older gateway is asked again without digests', async () => {
    const asked = [];
    stage.trouble = (request, response) => {
      if (!request.url.startsWith('/v1/events')) return false;
      asked.push(request.url);
      if (!request.url.includes('digest=1')) return false;
      const problem = { type: 'about:blank', title: 'Bad Request', status: 400, detail: 'unknown', parameter: 'digest' };
      response.writeHead(400, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify(problem));
      return true;
    };
    await stage.restart();
    const { resets } = await stage.shows(rows);
    assert.equal(resets.length, 1);
    assert.match(asked[0], /digest=1&resume=digest$/);
    for (const url of asked.slice(1)) assert.doesNotMatch(url, /digest/); // the refusal is remembered
  });
});
