// What the moves of a window cost on the wire: 20 moves by 10 rows of a window of 50, on its stream, with another stream
// for each move, and behind a load balancer, where a move may get to another replica. In Node, with real gateways.
import assert from 'node:assert/strict';
import { Front } from '../../dashboard/browser/stage/front.mjs';
import { Gateway } from '../../dashboard/browser/stage/gateway.mjs';
import { Site } from '../../dashboard/browser/stage/site.mjs';
import { Upstream } from '../../dashboard/browser/stage/upstream.mjs';
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

const value = (n, v) => ({ n, v, text: 'x'.repeat(200) });

async function fill({ url, token }) {
  for (let n = 0; n < rows; n++) {
    const response = await fetch(`${url}v1/watches/notes/resources/k${n}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(value(n)),
    });
    assert.ok(response.ok, `${response.status}`);
    await response.arrayBuffer();
  }
}

/**
 * Moves a window through all rows, and returns what that took. It has all of its rows, and is in sync, all the time. change
 * changes a row before each move, and returns the v that the row comes to have.
 */
async function scroll(url, { watch: name = 'notes', post, change }) {
  const wire = new Wire();
  const tide = watch(url, { transport: wire.transport(post) });
  const live = watchWindow(tide, { watch: name, order: 'n', limit });
  const until = (has) =>
    new Promise((resolve) => {
      const end = live.subscribe((view) => has(view) && queueMicrotask(() => (end(), resolve())));
    });
  await until(({ rows }) => rows.length === limit);
  const views = [];
  live.subscribe(({ rows: { length }, state, reason }) => views.push({ length, state, reason }));
  const before = { bytes: wire.bytes, streams: wire.streams };
  for (let i = 1; i <= moves; i++) {
    const changed = change && { n: i * by + by, v: await change(i * by + by) };
    live.move({ offset: i * by });
    await until(({ moving }) => !moving);
    assert.deepEqual(
      live.view.rows.map(({ value }) => value.n),
      Array.from({ length: limit }, (_, n) => i * by + n),
    );
    if (changed) await until(({ rows }) => rows.some(({ value: { n, v } }) => n === changed.n && v === changed.v));
  }
  tide.close();
  assert.deepEqual(
    views.slice(0, -1).filter(({ length, state }) => length !== limit || state !== 'in_sync'),
    [],
  );
  return { ...wire, bytes: wire.bytes - before.bytes, streams: wire.streams - before.streams };
}

test('a row that the window has does not travel again when it moves', { timeout: 120_000 }, async (t) => {
  const place = await Place.open([], '15s');
  t.after(() => place.close());
  await fill(place);
  const other = await scroll(place.url, { post: false });
  const same = await scroll(place.url, { post: true });
  t.diagnostic(`${moves} moves: ${other.bytes} bytes with ${other.streams} other streams, ${same.bytes} bytes on the same one`);
  assert.equal(other.streams, moves);
  assert.deepEqual([same.streams, same.moves], [0, moves]);
  assert.equal(same.upserts.size, limit + moves * by);
  assert.deepEqual(new Set(same.upserts.values()), new Set([1]));
  assert.ok(same.bytes * 3 < other.bytes, `${same.bytes} and ${other.bytes} bytes`);
});

// Of two replicas, the one that gets a request, by the number of the request, and how the first requests to move are answered.
const balanced = {
  'in turns': { choose: (n) => n % 2, answers: [404, 404, 404] },
  'in twos': { choose: (n) => (n >> 1) % 2, answers: [200, 404, 404, 404] },
};

test('a window moves behind a load balancer, on its stream or with another one', { timeout: 120_000 }, async (t) => {
  const upstream = await Upstream.start();
  t.after(() => upstream.stop());
  for (let n = 0; n < rows; n++) await upstream.put('nodes', `k${n}`, value(n));
  const gateways = [];
  for (let i = 0; i < 2; i++) {
    const gateway = await Gateway.start(upstream, { heartbeat: '15s' });
    t.after(() => gateway.kill());
    gateways.push(gateway);
  }
  let v = 0;
  const change = async (n) => {
    await upstream.put('nodes', `k${n}`, value(n, ++v));
    return v;
  };
  for (const [name, { choose, answers }] of Object.entries(balanced)) {
    let asked = 0;
    const front = new Front(() => gateways[choose(asked++)]);
    const site = await Site.start({}, front.answer);
    t.after(() => site.stop());
    const { bytes, streams } = await scroll(`${site.origin}/`, { watch: 'nodes', post: true, change });
    const statuses = front.asked('POST', '/v1/streams/').map(({ status }) => status);
    t.diagnostic(`${name}: ${moves} moves: ${bytes} bytes with ${streams} other streams, requests to move: ${statuses}`);
    assert.deepEqual(statuses.slice(0, answers.length), answers);
    assert.equal(streams, moves - statuses.filter((status) => status === 200).length);
    assert.ok(bytes < moves * limit * 400, `${bytes} bytes`); // a row has some 300
  }
});
