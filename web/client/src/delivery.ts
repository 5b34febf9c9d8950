import { fetchOnce } from './fetch_once.js';
import type { Store } from './store.js';

export interface DeliveryOptions {
  /** The mean time between two reports, in ms; a minute unless set, and a second at least. */
  readonly everyMs?: number;
  /** Additional headers of each report, for instance `Authorization`. */
  readonly headers?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** As in `fetch`; `same-origin` unless set. */
  readonly credentials?: RequestCredentials;
}

/** What the gateway takes in one report. */
const mostPainted = 8;

/**
 * Reports to the gateway at url how long changes of some stores take until they are
 * painted, for its metrics: from time to time, the next change of each. The gateway must
 * have `http.delivery_reports`. Returns a function that ends the reports.
 *
 * Only durations are sent, so the clock of this device does not matter. A report that
 * fails is not repeated.
 */
export function reportDelivery(
  url: string | URL,
  stores: readonly Store[],
  { everyMs = 60_000, headers = () => ({}), credentials = 'same-origin' }: DeliveryOptions = {},
): () => void {
  const report = `${String(url).replace(/\/$/, '')}/v1/delivery`;
  const ended = new AbortController();
  const awaited = new Set<Store>();
  const painted: Array<{ watch: string; revision: string; at: number }> = [];
  let roundTrip = 0; // the least so far: what is more was spent on waiting
  let timer: ReturnType<typeof setTimeout> | undefined;
  let sending = false;

  // Chance keeps the pages that were opened together from reporting together.
  function schedule(): void {
    timer = setTimeout(
      () => {
        if (!document.hidden) stores.slice(0, mostPainted).forEach((store) => awaited.add(store));
        schedule();
      },
      Math.max(everyMs, 1_000) * (0.5 + Math.random()),
    );
  }

  const unsubscribe = stores.map((store) => {
    let live = false; // whether it was in sync before the change: what a resume brings is not late
    return store.subscribe(({ state, revision }, { replaced, keys }) => {
      if (live && !replaced && keys.size && state === 'in_sync' && !document.hidden && awaited.delete(store)) {
        afterPaint((at) => add({ watch: store.watch, revision, at }));
      }
      live = state === 'in_sync';
    });
  });

  function add(one: { watch: string; revision: string; at: number }): void {
    if (ended.signal.aborted) return;
    painted.push(one);
    if (!sending) void send();
  }

  async function send(): Promise<void> {
    sending = true;
    try {
      const given = await headers();
      const began = performance.now();
      const changes = painted.splice(0, mostPainted).map(({ watch, revision, at }) => ({ watch, revision, ago_ms: began - at }));
      const response = await fetchOnce(report, {
        method: 'POST',
        credentials,
        signal: ended.signal,
        headers: { 'Content-Type': 'application/json', ...given },
        body: JSON.stringify({ round_trip_ms: roundTrip, painted: changes }),
      });
      const took = performance.now() - began;
      if (response.ok) roundTrip = Math.min(roundTrip || took, took);
    } catch {
      // The next report is another sample.
    } finally {
      painted.length = 0;
      sending = false;
    }
  }

  schedule();
  return () => {
    ended.abort();
    clearTimeout(timer);
    unsubscribe.forEach((end) => end());
  };
}

// The callback of an animation frame comes before the paint, and a message after it.
function afterPaint(painted: (at: number) => void): void {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      painted(performance.now());
    };
    port2.postMessage(undefined);
  });
}
