import { RefusedError } from './errors.js';
import type { HubMessage, TabMessage } from './port.js';
import type { HelloEvent } from './protocol.js';
import { intervalOf } from './rate_control.js';
import type { SharedSpec, SharedWatch } from './shared_watch.js';
import { canonical, specsOf } from './spec.js';
import { Subscription } from './subscription.js';

// After twice this long without an answer the tab gives up the stream. It asks more
// often, but the timers of a hidden tab may fire only once a minute.
const heartbeatMs = 40_000;

// The length of one message, in characters: a large snapshot must not keep either
// side from other work for long.
const sliceLength = 1 << 19;

type TabRequest = Omit<Extract<TabMessage, { query: string }>, 'stream'>;
type Message = Omit<Extract<HubMessage, { stream: number }>, 'stream'>;

/** What a stream of a tab needs of the hub of its principal. */
export interface StreamHub {
  follow(spec: SharedSpec): SharedWatch;
  /** Returns what follows a window that a stream moves: what it has followed so far, which moves, unless other streams follow it too. */
  moved(shared: SharedWatch, spec: SharedSpec): SharedWatch;
  refused(shared: SharedWatch, error: RefusedError): void;
}

/**
 * One stream to a tab. The next message waits until the last one is acknowledged;
 * changes that occur meanwhile are sent as the newest state. So a tab that is slow or frozen
 * costs only the names of some keys, and a snapshot is put together only when it can
 * be sent.
 */
export class TabStream {
  readonly #subscriptions: Subscription[];
  readonly #hello: string[]; // until it is sent
  #lines: string[] = []; // to be sent
  #sent = 0; // the number of #lines that are sent
  #snapshotId: string | undefined; // the id inside #lines, if they are a snapshot
  #id = ''; // the id after #lines
  #ready = true; // the tab has acknowledged all messages
  #quiet: boolean; // the hub's initial states are not sent
  #scheduled = false;
  #moves = 0; // of windows
  readonly #intervalMs: number; // between changes of resources
  #filledAt = -Infinity; // when there was something to send
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended = false;

  constructor(
    private readonly hub: StreamHub,
    name: string,
    { query, lastEventId, snapshots = [] }: TabRequest,
    private readonly post: (message: Message) => void,
  ) {
    const parameters = new URLSearchParams(query);
    this.#intervalMs = intervalOf(parameters.get('max_rate'));
    this.#subscriptions = specsOf(parameters).map(({ prefix: asked, first, ...rest }) => {
      const { query } = canonical({ ...rest, prefix: asked });
      const snapshot = snapshots.find((one) => one.query === query);
      // What a window has depends on the prefix, and so do counts: they are not narrowed here.
      const [spec, prefix] = rest.order || rest.by ? [{ ...rest, prefix: asked }, ''] : [rest, asked];
      return new Subscription(hub.follow(spec), { prefix, lastEventId, snapshot, first }, () => this.#schedule());
    });
    const watches = this.#subscriptions.map(({ watch, mode }) => ({ watch, mode }));
    this.#hello = [JSON.stringify({ type: 'hello', heartbeat_ms: heartbeatMs, stream: name, watches } satisfies HelloEvent)];
    this.#quiet = lastEventId !== '';
    this.#schedule();
  }

  /** The tab asks whether the hub is alive. */
  pinged(): void {
    this.#quiet = false;
    this.#schedule();
  }

  /** Moves a window, with the parameters of a query. Returns the number of the move; 0 if it has no such window. */
  move(query: string): number {
    const parameters = new URLSearchParams(query);
    const subscription = this.#subscriptions.find(({ watch, shared }) => shared.spec.order && watch === parameters.get('watch'));
    if (!subscription) return 0;
    const place = Object.fromEntries(['limit', 'offset', 'after'].map((name) => [name, parameters.get(name) ?? '']));
    subscription.move(this.hub.moved(subscription.shared, { ...subscription.shared.spec, ...place }), ++this.#moves);
    return this.#moves;
  }

  /** The tab has processed the last message. */
  acknowledged(): void {
    this.#ready = true;
    this.#send();
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  // All changes that reach the hub in one task become one change in the tab.
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#ended) return;
    const refused = this.#subscriptions.find(({ closed }) => closed);
    if (refused) return this.#refuse(refused);
    if (!this.#ready || this.#waiting) return;
    if (this.#sent === this.#lines.length) {
      if (this.#early) return;
      this.#fill();
    }
    if (this.#sent === this.#lines.length) return;
    this.#ready = false;
    const events = this.#slice();
    const id = this.#sent === this.#lines.length ? this.#id : this.#snapshotId;
    this.post({ events, ...(id && { id }) });
  }

  // A tab that was in sync with another hub is not told that this one is only
  // starting, unless that lasts until the tab asks.
  get #waiting(): boolean {
    return this.#quiet && this.#subscriptions.every(({ starting }) => starting);
  }

  // Changes of resources wait until they may be sent. What comes after a quiet time is sent at once.
  get #early(): boolean {
    const wait = this.#filledAt + this.#intervalMs - performance.now();
    if (wait <= 0 || this.#subscriptions.some(({ urgent }) => urgent)) return false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#send(), wait);
    return true;
  }

  // A snapshot is sent alone: nothing is shown before its end, so that the tab may
  // store each piece.
  #fill(): void {
    const snapshot = this.#subscriptions.find(({ hasSnapshot }) => hasSnapshot);
    this.#snapshotId = snapshot && (this.#position || '-');
    const events = snapshot ? snapshot.takeEvents() : this.#subscriptions.flatMap((subscription) => subscription.takeEvents());
    this.#lines = this.#hello.splice(0).concat(events);
    // What comes first has no position, and an id all the same, which completes it.
    this.#id = this.#position || (this.#subscriptions.some(({ begun }) => begun) ? '-' : '');
    this.#sent = 0;
    if (this.#lines.length) this.#filledAt = performance.now();
  }

  get #position(): string {
    return this.#subscriptions
      .map(({ position }) => position)
      .filter(Boolean)
      .join();
  }

  #slice(): string[] {
    const from = this.#sent;
    for (let length = 0; length < sliceLength && this.#sent < this.#lines.length; this.#sent++) length += this.#lines[this.#sent]!.length;
    return this.#lines.slice(from, this.#sent);
  }

  #refuse({ watch, shared, error }: Subscription): void {
    const refusal = error instanceof RefusedError ? error : new RefusedError(502, undefined, undefined, error?.message);
    const { status, problem, message: reason } = refusal;
    // This watch has no room in the stream: the gateway cannot know which one was
    // added last.
    // Without an error it is closed because the hub begins again.
    this.post({ refused: { status, problem: status === 414 ? { ...problem!, watch } : problem, reason, final: error !== undefined } });
    this.end();
    this.hub.refused(shared, refusal);
  }
}
