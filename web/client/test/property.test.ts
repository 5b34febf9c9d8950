import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../src/protocol.js';
import { canonical } from '../src/spec.js';
import { parser } from '../src/sse.js';
import { Stores } from '../src/stores.js';
import { Seen } from './seen.js';
import { history, response, Upstream } from './upstream.js';

/** A client whose streams are cut at places that the test chooses. */
class Follower {
  readonly stores = new Stores();
  readonly seen: Seen[];

  constructor(upstreams: Upstream[]) {
    this.seen = upstreams.map((upstream) => new Seen(upstream, this.stores.add(canonical(upstream.watch))));
  }

  read(bytes: Uint8Array, cuts: number[], heads: number[]) {
    this.stores.request();
    const feed = parser({
      event: (data) => {
        const event = JSON.parse(data) as Event;
        if (event.type === 'hello') this.stores.open();
        else this.stores.take(event);
      },
      id: (id) => this.stores.commit(id),
      retry: () => {},
    });
    this.seen.forEach((seen, i) => {
      seen.head = heads[i]!;
    });
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

test('shows only states that the upstream had, wherever its streams are cut', () => {
  const attempt = fc.record({
    heads: fc.array(fc.nat(), { minLength: 2, maxLength: 2 }),
    cuts: fc.array(fc.nat(), { maxLength: 8 }),
    lostAt: fc.nat(),
  });
  fc.assert(
    fc.property(history, history, fc.array(attempt, { maxLength: 5 }), fc.infiniteStream(fc.nat(1_000)), (a, b, attempts, random) => {
      const choose = (n: number) => (random.next().value as number) % n;
      const upstreams = [new Upstream('v', a, choose), new Upstream('w', b, choose)];
      const client = new Follower(upstreams);
      let heads = [0, 0];
      for (const { cuts, lostAt, ...on } of attempts) {
        // Meanwhile the upstreams have moved on; they never move back.
        heads = heads.map((head, i) => head + (on.heads[i]! % (upstreams[i]!.versions.length - head)));
        const bytes = response(upstreams, client.stores.id, heads, choose);
        client.read(bytes.subarray(0, lostAt % (bytes.length + 1)), cuts, heads);
        client.lose();
        // The next replica has the version of the position as well, or waits for it.
        heads = heads.map((head, i) => Math.max(head, upstreams[i]!.find(client.stores.id)));
      }
      const bytes = response(upstreams, client.stores.id, heads, choose);
      client.read(bytes, [], heads);
      for (const { store, at, upstream } of client.seen) {
        expect(store.state).toBe('in_sync');
        expect(at).toBe(upstream.versions.length - 1);
      }
    }),
    { numRuns: 1_000 },
  );
});
