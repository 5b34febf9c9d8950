// Lists and snapshots in zstd, as Chromium asks for them by itself, decoded by Chromium: they say what they say without a
// coding. The gateway asks for no credentials, since lists for those are not compressed.
import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { build } from '../../dashboard/browser/stage/build.mjs';
import { listening } from '../../dashboard/browser/stage/gateway.mjs';
import { freePort } from '../../dashboard/browser/stage/port.mjs';
import { Process } from '../../dashboard/browser/stage/process.mjs';
import { test } from '../../nodetest/only.mjs';
import { browsers, startSite } from './browsers.mjs';

const [{ missing, open }] = browsers;
const rows = 500;
const listPath = 'v1/watches/notes/resources?page_size=1000';
const streamPath = 'v1/events?watch=notes&format=ndjson&until=end_of_snapshot';

/** Starts a gateway that pages of an origin may read. Returns its URL. */
async function startGateway(t, origin) {
  const port = await freePort();
  const file = join(await mkdtemp(join(tmpdir(), 'watchtide-coding-')), 'gateway.yaml');
  await writeFile(
    file,
    `http: { listen: "127.0.0.1:${port}", allowed_origins: [${JSON.stringify(origin)}] }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`,
  );
  const [process] = await Process.start(await build('cmd/gateway'), ['serve', '--config', file], listening);
  t.after(() => process.stop('SIGKILL'));
  return `http://127.0.0.1:${port}/`;
}

/** A note whose value is of some kilobytes, and compressible. */
const note = (n) => ({ n, text: `${n} `.repeat(50 + 10 * (n % 100)) });

/** What a client without a coding reads. */
async function identity(url) {
  const response = await new Promise((resolve, reject) => request(url, { agent: false }, resolve).on('error', reject).end());
  assert.equal(response.headers['content-encoding'], undefined);
  return text(response);
}

/** The notes of a stream, by key. */
const upserts = (ndjson) =>
  ndjson
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === 'upsert')
    .map(({ key, value }) => `${key} ${JSON.stringify(value)}`)
    .sort();

test('Chromium decodes lists and snapshots in zstd', { skip: missing, timeout: 120_000 }, async (t) => {
  const site = await startSite();
  t.after(() => site.stop());
  const gateway = await startGateway(t, site.origin);
  for (let n = 0; n < rows; n++) {
    const url = `${gateway}v1/watches/notes/resources/k${n}`;
    const { ok, status } = await fetch(url, { method: 'PUT', body: JSON.stringify(note(n)) });
    assert.ok(ok, `PUT k${n}: ${status}`);
  }
  const page = await open(t);
  await page.goto(site.origin);
  const read = async (path) => {
    const answered = page.waitForResponse(`${gateway}${path}`);
    const body = await page.evaluate(async (url) => (await fetch(url)).text(), `${gateway}${path}`);
    return { body, coding: (await answered).headers()['content-encoding'] };
  };
  const list = await read(listPath);
  assert.equal(list.coding, 'zstd');
  assert.equal(list.body, await identity(`${gateway}${listPath}`));
  assert.equal(JSON.parse(list.body).resources.length, rows);

  const stream = await read(streamPath);
  assert.equal(stream.coding, 'zstd');
  assert.equal(upserts(stream.body).length, rows);
  assert.deepEqual(upserts(stream.body), upserts(await identity(`${gateway}${streamPath}`)));
  assert.match(stream.body, /"type":"goodbye"/, 'all frames are read');
});
