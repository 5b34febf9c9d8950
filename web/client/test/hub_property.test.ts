import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Hub, sharedTransport } from '../src/shared.js';
import { parser } from '../src/sse.js';
import type { Receiver, StreamRequest, Transport } from '../src/transport.js';
import { type Watches, watch } from '../src/watch.js';
import { Browser, type Tab } from './browser.js';
import { Seen } from './seen.js';
import { pass } from './server.js';
import { type Commit, history, response, Upstream } from './upstream.js';

const url = 'http://gateway.test';

/** A gateway that sends a response in pieces whose lengths the test chooses. */
class Gateway implements Transport {
  readonly hearsHeartbeat = false;
  readonly heads: number[];
  #response: { left: string; feed: (text: string) => void; receiver: Receiver; cut: (error: Error) => void } | undefined;

  constructor(
    private readonly upstreams: Upstream[],
    private readonly choose: (n: number) => number,
  ) {
    this.heads = upstreams.map(() => 0);
  }

  read(request: StreamRequest, receiver: Receiver): Promise<void> {
    const left = new TextDecoder().decode(this.#respond(request));
    return new Promise((_, cut) => {
      const response = (this.#response = { left, feed: parser(receiver), receiver, cut });
      request.signal.addEventListener('abort', () => {
        if (this.#response === response) this.#response = undefined;
      });
    });
  }

  #respond({ url, lastEventId }: StreamRequest): Uint8Array {
    const { searchParams } = new URL(url);
    // A position with another prefix resumes nothing, but it shows which versions were seen.
    for (const [i, upstream] of this.upstreams.entries()) {
      upstream.prefix = searchParams.get(`prefix.${upstream.watch}`) ?? '';
      this.has(i, upstream.find(lastEventId));
    }
    const served = this.upstreams.filter((upstream) => searchParams.getAll('watch').includes(upstream.watch));
    return response(
      served,
      lastEventId,
      served.map((upstream) => this.heads[this.upstreams.indexOf(upstream)]!),
      this.choose,
    );
  }

  /** The next gateway has every version that a client has seen. */
  has(upstream: number, version: number): void {
    this.heads[upstream] = Math.max(this.heads[upstream]!, version);
  }

  send(length: number): void {
    const response = this.#response;
    if (!response) return;
    response.receiver.alive();
    response.feed(response.left.slice(0, length));
    response.left = response.left.slice(length);
    response.receiver.flush();
  }

  cut(): void {
    this.#response?.cut(new Error('cut'));
  }
}

/** A tab that follows v, and the keys of w with a prefix. */
interface Visitor {
  readonly tab: Tab;
  readonly port: MessagePort;
  readonly tide: Watches;
  readonly seen: Seen[];
}

function visit(browser: Browser, upstreams: Upstream[], prefix: string): Visitor {
  const tab = browser.tab();
  const { port1, port2 } = new MessageChannel();
  const tide = tab.run(() => watch(url, { watches: ['v', { watch: 'w', prefix }], transport: sharedTransport(port2), hiddenMs: 1_000 }));
  const seen = upstreams.map(
    (upstream) =>
      new Seen(
        upstream,
        upstream.watch === 'w' ? tide.store({ watch: 'w', prefix }) : tide.store('v'),
        upstream.watch === 'w' ? prefix : '',
      ),
  );
  return { tab, port: port1, tide, seen };
}

beforeEach(() => void vi.useFakeTimers());

afterEach(() => void vi.useRealTimers());

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('send' as const), n: fc.nat(2_000) }) },
  fc.record({
    do: fc.constantFrom('cut' as const, 'hide' as const, 'show' as const, 'another hub' as const, 'visit' as const),
    n: fc.nat(100),
  }),
);

const zeros = () =>
  fc.stream(
    (function* () {
      while (true) yield 0;
    })(),
  );
const put: Commit = { restored: false, changes: [['a', '']] };
const restore: Commit = { restored: true, changes: [['a', undefined]] };
const sends = Array.from({ length: 15 }, () => ({ do: 'send' as const, n: 100 }));

// A hub follows w with the prefix of the second tab alone. Then the first tab comes
// back, and the hub follows w with their common prefix.
const widened = [
  { do: 'hide' as const, n: 0 },
  { do: 'another hub' as const, n: 0 },
  { do: 'send' as const, n: 2_000 },
  { do: 'show' as const, n: 0 },
];

test('tabs show only states that the upstream had, whatever happens to them or the hub', async () => {
  await fc.assert(
    fc.asyncProperty(history, history, fc.array(step, { maxLength: 25 }), fc.infiniteStream(fc.nat(1_000)), async (a, b, steps, random) => {
      const choose = (n: number) => (random.next().value as number) % n;
      const upstreams = [new Upstream('v', a, choose), new Upstream('w', b, choose)];
      const gateway = new Gateway(upstreams, choose);
      const browser = new Browser();
      const visitors: Visitor[] = [];
      let hub = new Hub(url, { transport: gateway });

      const act = {
        send: (n: number) => gateway.send(n),
        cut: () => gateway.cut(),
        hide: (n: number) => visitors[n % visitors.length]!.tab.hide(),
        show: (n: number) => visitors[n % visitors.length]!.tab.show(),
        'another hub': () => {
          for (const { seen } of visitors) seen.forEach(({ at }, i) => gateway.has(i, at));
          hub.rest();
          hub = new Hub(url, { transport: gateway });
          for (const { port } of visitors) hub.serve(port);
        },
        visit: (n: number) => {
          const visitor = visit(browser, upstreams, ['', 'a', 'b/', 'b/c'][n % 4]!);
          hub.serve(visitor.port);
          visitors.push(visitor);
        },
      };
      act.visit(2);
      act.visit(1);
      try {
        for (const { do: what, n } of steps) {
          act[what](n);
          await pass(what === 'hide' ? 70_000 : 100);
        }
        for (const { tab } of visitors) tab.show();
        for (let i = 0; i < 6; i++) {
          // until every back-off is over
          await pass(10_000);
          gateway.send(Infinity);
        }
        await pass(100);
        for (const { store, at, upstream, faults } of visitors.flatMap(({ seen }) => seen)) {
          for (const fault of faults) throw fault;
          expect([store.state, at]).toEqual(['in_sync', upstream.versions.length - 1]);
        }
      } finally {
        for (const { tide } of visitors) tide.close();
        hub.rest();
        browser.close();
        vi.clearAllTimers();
      }
    }),
    {
      numRuns: 200,
      examples: [
        // A stream with a wider prefix does not go back in time.
        [[put], [put, restore], [...widened, ...sends], zeros()],
        // A position with the narrower prefix does not resume it, however often it is sent.
        [[put], [put], [...widened, { do: 'cut', n: 0 }, ...sends], zeros()],
      ],
    },
  );
}, 240_000);
