// What the moves of a window cost on the wire: 20 moves by 10 rows of a window of 50, on its stream, and with another stream
// for each move. In Node, with a real gateway.
import assert from 'node:assert/strict';
import { test } from '../../nodetest/only.mjs';
import { watch } from '../dist/index.js';
import { watchWindow } from '../dist/window.js';
import { Place } from './place.mjs';

const [rows, limit, by, moves] = [300, 50, 10, 20];

/** Counts what the client reads: bytes, and how often each resource comes. */
class Wire {
  bytes = 0;
  streams = 0;
  moves = 0;
  upserts = new Map();

  /** Reads streams as the client does without a transport, from here on. */
  transport(post) {
    return {
      hearsHeartbeat: true,
      ...(post && { post: (request) => this.#post(request) }),
      read: (request, receiver) => this.#read(request, receiver),
    };
  }

  async #post({ url, ...request }) {
    this.moves++;
    const response = await fetch(url, { ...request, method: 'POST' });
    const body = await response.text();
    this.bytes += body.length;
    return new Response(body, response);
  }

  async #read({ url, lastEventId, headers, signal }, receiver) {
    this.streams++;
    const response = await fetch(url, { headers: { ...headers, ...(lastEventId && { 'Last-Event-ID': lastEventId }) }, signal });
    assert.equal(response.status, 200);
    let text = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body) {
      this.bytes += bytes.length;
      receiver.alive();
      text += decoder.decode(bytes, { stream: true });
      const messages = text.split('\n\n');
      text = messages.pop();
      for (const message of messages) this.#pass(message, receiver);
      receiver.flush();
    }
  }

  #pass(message, receiver) {
    const fields = Object.fromEntries(message.split('\n').map((line) => line.split(/: (.*)/)));
    if (fields.data) {
      const { type, key } = JSON.parse(fields.data);
      if (type === 'upsert') this.upserts.set(key, (this.upserts.get(key) ?? 0) + 1);
      receiver.event(fields.data);
    }
    if (fields.id !== undefined) receiver.id(fields.id);
  }
}

async function fill({ url, token }) {
  const value = (n) => JSON.stringify({ n, text: 'x'.repeat(200) });
  for (let n = 0; n < rows; n++) {
    const response = await fetch(`${url}v1/watches/notes/resources/k${n}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${token}` },
      body: value(n),
    });
    assert.ok(response.ok, `${response.status}`);
    await response.arrayBuffer();
  }
}

/** Moves a window through all rows, and returns what that took. It has all of its rows all the time. */
async function scroll(url, post) {
  const wire = new Wire();
  const tide = watch(url, { transport: wire.transport(post) });
  const live = watchWindow(tide, { watch: 'notes', order: 'n', limit });
  const until = (has) =>
    new Promise((resolve) => {
      const end = live.subscribe((view) => has(view) && queueMicrotask(() => (end(), resolve())));
    });
  await until(({ rows }) => rows.length === limit);
  live.subscribe(({ rows }) => assert.equal(rows.length, limit));
  const before = { bytes: wire.bytes, streams: wire.streams };
  for (let i = 1; i <= moves; i++) {
    live.move({ offset: i * by });
    await until(({ moving }) => !moving);
    assert.deepEqual(
      live.view.rows.map(({ value }) => value.n),
      Array.from({ length: limit }, (_, n) => i * by + n),
    );
  }
  tide.close();
  return { ...wire, bytes: wire.bytes - before.bytes, streams: wire.streams - before.streams };
}

test('a row that the window has does not travel again when it moves', { timeout: 120_000 }, async (t) => {
  const place = await Place.open([], '15s');
  t.after(() => place.close());
  await fill(place);
  const other = await scroll(place.url, false);
  const same = await scroll(place.url, true);
  t.diagnostic(`${moves} moves: ${other.bytes} bytes with ${other.streams} other streams, ${same.bytes} bytes on the same one`);
  assert.equal(other.streams, moves);
  assert.deepEqual([same.streams, same.moves], [0, moves]);
  assert.equal(same.upserts.size, limit + moves * by);
  assert.deepEqual(new Set(same.upserts.values()), new Set([1]));
  assert.ok(same.bytes * 3 < other.bytes, `${same.bytes} and ${other.bytes} bytes`);
});
