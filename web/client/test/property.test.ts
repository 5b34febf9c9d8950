import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../src/protocol.js';
import { parser } from '../src/sse.js';
import type { Changes } from '../src/replica.js';
import { Stores } from '../src/stores.js';
import type { Store } from '../src/store.js';
import type { View } from '../src/view.js';
import { hello } from './server.js';
import { history, Upstream, type Piece } from './upstream.js';

/** A client whose streams are cut wherever the test likes. */
class Follower {
  readonly stores = new Stores();
  readonly seen: Seen[];

  constructor(upstreams: Upstream[]) {
    this.seen = upstreams.map((upstream) => new Seen(upstream, this.stores.add(upstream.watch)));
  }

  read(bytes: Uint8Array, cuts: number[], heads: number[]) {
    const feed = parser({
      event: (data) => {
        const event = JSON.parse(data) as Event;
        if (event.type === 'hello') this.stores.open(event);
        else this.stores.take(event);
      },
      id: (id) => this.stores.commit(id),
      retry: () => {},
    });
    this.seen.forEach((seen, i) => { seen.head = heads[i]!; });
    const decoder = new TextDecoder();
    const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
    for (let i = 1; i < at.length; i++) {
      feed(decoder.decode(bytes.subarray(at[i - 1], at[i]), { stream: true }));
      this.stores.publish();
    }
    for (const fault of this.seen.flatMap(({ faults }) => faults)) throw fault;
  }

  lose() {
    this.stores.disconnect({ state: 'offline', since: Date.now(), reason: '' });
  }
}

/** What was shown of one watch, compared with the model at every call. */
class Seen {
  head = 0;           // of the watch, when the stream began
  at = -1;            // the version that was shown last
  shown = new Map<string, unknown>();
  readonly faults: unknown[] = [];

  constructor(readonly upstream: Upstream, readonly store: Store) {
    store.subscribe((...call) => {
      // A store keeps the faults of its listeners to itself.
      try { this.#check(...call); } catch (error) { this.faults.push(error); }
    });
  }

  #check({ resources, state, revision }: View, { replaced, keys }: Changes) {
    const now = new Map([...resources].map(([key, { value }]) => [key, value]));
    if (revision !== '') this.at = this.#find(now, revision);
    if (!replaced) expect(differing(this.shown, now).filter((key) => !keys.has(key))).toEqual([]);
    if (state === 'in_sync') expect(this.at).toBeGreaterThanOrEqual(this.head);
    this.shown = now;
  }

  // Never half of something, and never back in time.
  #find(now: Map<string, unknown>, revision: string): number {
    const { upstream } = this;
    for (let i = Math.max(0, this.at); i < upstream.versions.length; i++) {
      if (String(upstream.versions[i]!.revision) === revision && differing(upstream.values(i), now).length === 0) return i;
    }
    throw new Error(`shown: ${JSON.stringify([...now])} at ${revision}, which the upstream never was after version ${this.at}`);
  }
}

const differing = (a: Map<string, unknown>, b: Map<string, unknown>) =>
  [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key) || a.has(key) !== b.has(key));

/** One response for all watches: pieces in any order, and ids that hold every position. */
function response(upstreams: Upstream[], id: string, heads: number[], choose: (n: number) => number): Uint8Array {
  const known = new Map(id.split(',').filter(Boolean).map((position) => [position.split('@')[0]!, position]));
  const open = upstreams.map((upstream, i) => upstream.serve(known.get(upstream.watch), heads[i]!));
  let text = `retry: 1\n\n${hello(upstreams.map(({ watch }) => watch), 'resume')}`;
  // A piece without a position is followed by more of the same watch.
  for (let last: Generator<Piece> | undefined; open.length > 0;) {
    const one = last ?? open[choose(open.length)]!;
    const { done, value: piece } = one.next();
    if (done) {
      open.splice(open.indexOf(one), 1);
      last = undefined;
      continue;
    }
    text += piece.text;
    if (piece.position) {
      known.set(piece.position.split('@')[0]!, piece.position);
      text = `${text.slice(0, -1)}id: ${[...known.values()].join()}\n\n`;
    }
    last = piece.position ? undefined : one;
    if (!choose(6)) text += ': heartbeat\n\n';
  }
  return new TextEncoder().encode(text);
}

test('shows only states that the upstream had, wherever its streams are cut', () => {
  const attempt = fc.record({ heads: fc.array(fc.nat(), { minLength: 2, maxLength: 2 }), cuts: fc.array(fc.nat(), { maxLength: 8 }), lostAt: fc.nat() });
  fc.assert(fc.property(history, history, fc.array(attempt, { maxLength: 5 }), fc.infiniteStream(fc.nat(1_000)), (a, b, attempts, random) => {
    const choose = (n: number) => (random.next().value as number) % n;
    const upstreams = [new Upstream('v', a, choose), new Upstream('w', b, choose)];
    const client = new Follower(upstreams);
    let heads = [0, 0];
    for (const { cuts, lostAt, ...on } of attempts) {
      // Meanwhile the upstreams have moved on; they never move back.
      heads = heads.map((head, i) => head + on.heads[i]! % (upstreams[i]!.versions.length - head));
      const bytes = response(upstreams, client.stores.id, heads, choose);
      client.read(bytes.subarray(0, lostAt % (bytes.length + 1)), cuts, heads);
      client.lose();
      // What the position names, the next replica has as well, or waits for.
      heads = heads.map((head, i) => Math.max(head, upstreams[i]!.find(client.stores.id)));
    }
    const bytes = response(upstreams, client.stores.id, heads, choose);
    client.read(bytes, [], heads);
    for (const { store, at, upstream } of client.seen) {
      expect(store.state).toBe('in_sync');
      expect(at).toBe(upstream.versions.length - 1);
    }
  }), { numRuns: 1_000 });
});
