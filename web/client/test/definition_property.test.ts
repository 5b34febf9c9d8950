import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { WatchSpec } from '../src/spec.js';
import { parser } from '../src/sse.js';
import type { Receiver, StreamRequest, Transport } from '../src/transport.js';
import { watch } from '../src/watch.js';
import { Seen } from './seen.js';
import { pass } from './server.js';
import { type Commit, history, response, Upstream } from './upstream.js';

/** A gateway that sends each response in pieces whose lengths the test chooses. */
class Gateway implements Transport {
  readonly hearsHeartbeat = false;
  readonly heads: number[];
  #responses: Array<{ left: string; feed: (text: string) => void; receiver: Receiver; cut: (error: Error) => void }> = [];

  constructor(
    private readonly upstreams: Upstream[],
    private readonly choose: (n: number) => number,
  ) {
    this.heads = upstreams.map(() => 0);
  }

  read(request: StreamRequest, receiver: Receiver): Promise<void> {
    const left = new TextDecoder().decode(this.#respond(request));
    return new Promise((_, cut) => {
      const response = { left, feed: parser(receiver), receiver, cut };
      this.#responses.push(response);
      request.signal.addEventListener('abort', () => {
        this.#responses = this.#responses.filter((one) => one !== response);
      });
    });
  }

  #respond({ url, lastEventId }: StreamRequest): Uint8Array {
    const { searchParams } = new URL(url);
    const asked = searchParams.getAll('watch');
    expect(new Set(asked).size).toBe(asked.length); // a stream can carry each watch once
    const served = this.upstreams.filter((upstream) => asked.includes(upstream.watch));
    for (const upstream of served) {
      upstream.prefix = searchParams.get(`prefix.${upstream.watch}`) ?? '';
      const i = this.upstreams.indexOf(upstream);
      this.heads[i] = Math.max(this.heads[i]!, upstream.find(lastEventId));
    }
    return response(
      served,
      lastEventId,
      served.map((upstream) => this.heads[this.upstreams.indexOf(upstream)]!),
      this.choose,
    );
  }

  get streams(): number {
    return this.#responses.length;
  }

  send(stream: number, length: number): void {
    const response = this.#responses[stream % this.#responses.length];
    if (!response) return;
    response.receiver.alive();
    response.feed(response.left.slice(0, length));
    response.left = response.left.slice(length);
    response.receiver.flush();
  }

  cut(stream: number): void {
    this.#responses[stream % this.#responses.length]?.cut(new Error('cut'));
  }
}

beforeEach(() => void vi.useFakeTimers());

afterEach(() => void vi.useRealTimers());

const parts: Array<Exclude<WatchSpec, string>> = ['', 'a', 'b/'].map((prefix) => ({ watch: 'w', prefix }));

type Step = { do: 'send' | 'cut' | 'add' | 'remove' | 'wait'; of: number; n: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('send' as const, 'cut' as const), of: fc.nat(5), n: fc.nat(1_500) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'remove' as const), of: fc.nat(2), n: fc.nat(1_000) }) },
  fc.record({ do: fc.constant('wait' as const), of: fc.nat(0), n: fc.constantFrom(10, 60, 2_000) }),
);

const zeros = () =>
  fc.stream(
    (function* () {
      while (true) yield 0;
    })(),
  );
const put: Commit = {
  restored: false,
  changes: [
    ['a', 1],
    ['b/c', 2],
  ],
};
const add = (of: number): Step => ({ do: 'add', of, n: 0 });
const remove = (of: number): Step => ({ do: 'remove', of, n: 0 });
const send = (n: number): Step => ({ do: 'send', of: 0, n });
const requested: Step = { do: 'wait', of: 0, n: 60 };

// The part is wanted while the stream of the whole watch still sends.
const early = [add(0), requested, remove(0), add(1), send(2_000), requested];

// The whole watch is wanted again when a part has been requested, and some of the answer
// has arrived: perhaps an id that still has the position of the whole watch.
const back = (n: number) => [add(0), requested, send(2_000), remove(0), add(1), requested, send(n), remove(1), add(0), requested];

test('each part of a watch shows only states that it had, whatever is added, removed or cut', async () => {
  await fc.assert(
    fc.asyncProperty(history, history, fc.array(step, { maxLength: 40 }), fc.infiniteStream(fc.nat(1_000)), async (a, b, steps, random) => {
      const choose = (n: number) => (random.next().value as number) % n;
      const upstreams = [new Upstream('v', a, choose), new Upstream('w', b, choose)];
      const gateway = new Gateway(upstreams, choose);
      const tide = watch('http://gateway.test', { watches: ['v'], transport: gateway, hiddenMs: Infinity });
      const seen = new Map([[tide.store('v'), new Seen(upstreams[0]!, tide.store('v'))]]);
      const followed = new Set<number>();

      const act = {
        send: (of: number, n: number) => gateway.send(of, n),
        cut: (of: number) => gateway.cut(of),
        wait: () => {},
        add: (of: number) => {
          const store = tide.add(parts[of]!);
          if (!seen.has(store)) seen.set(store, new Seen(upstreams[1]!, store, parts[of]!.prefix));
          followed.add(of);
        },
        remove: (of: number) => {
          tide.remove(parts[of]!);
          followed.delete(of);
        },
      };
      try {
        for (const { do: what, of, n } of steps) {
          act[what](of, n);
          await pass(what === 'wait' ? n : 1);
        }
        for (let i = 0; i < 6; i++) {
          // until every back-off is over
          await pass(10_000);
          for (let stream = 0; stream < gateway.streams; stream++) gateway.send(stream, Infinity);
        }
        await pass(100);
        for (const { faults } of seen.values()) for (const fault of faults) throw fault;
        for (const store of [tide.store('v'), ...[...followed].map((of) => tide.store(parts[of]!))]) {
          const { at, upstream } = seen.get(store)!;
          expect([store.state, at]).toEqual(['in_sync', upstream.versions.length - 1]);
        }
        expect(gateway.streams).toBeLessThanOrEqual(Math.max(1, parts.length));
      } finally {
        tide.close();
        vi.clearAllTimers();
      }
    }),
    {
      numRuns: 300,
      examples: [early, ...Array.from({ length: 40 }, (_, i) => back(20 * i))].map((steps) => [[put], [put], steps, zeros()]),
    },
  );
});
