import type { Event } from '../src/protocol.js';
import type { Store } from '../src/store.js';
import type { Receiver, StreamRequest, Transport } from '../src/transport.js';
import { type Watches, type WatchOptions, watch } from '../src/watch.js';

/** A gateway's end of a stream, without a network and without time: a page has what was sent when send returns. */
export class Line implements Transport {
  readonly hearsHeartbeat = false;
  readonly requests: StreamRequest[] = [];
  /** Resolves when the page has asked for the stream. */
  readonly opened: Promise<void>;
  #opens!: () => void;
  #receiver!: Receiver;
  #end!: { resolve: () => void; reject: (error: Error) => void };

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#opens = resolve;
    });
  }

  /** Follows the watch w over this line. */
  follow<V>(options: WatchOptions<'w'> = {}): Watches<{ w: V }> {
    return watch<{ w: V }>('http://gateway.test/', { watches: ['w'], transport: this, ...options });
  }

  read(request: StreamRequest, receiver: Receiver): Promise<void> {
    this.requests.push(request);
    this.#receiver = receiver;
    this.#opens();
    return new Promise((resolve, reject) => {
      this.#end = { resolve, reject };
      request.signal.addEventListener('abort', () => resolve());
    });
  }

  /** Sends events, and the position after them, which arrive together. */
  send(position: string, ...events: Event[]): void {
    this.#receiver.alive();
    for (const event of events) this.#receiver.event(JSON.stringify(event));
    this.#receiver.id(position);
    this.#receiver.flush();
  }

  /** Sends a snapshot. The positions and revisions of resources count up. */
  snapshot(revision: number, values: Record<string, unknown>, reason: 'initial' | 'behind' = 'initial'): void {
    const upserts = Object.entries(values).map(([key, value]) => upsert(key, revision, value));
    this.send(
      `w@e-${revision}`,
      { type: 'hello', heartbeat_ms: 15_000, watches: [{ watch: 'w', mode: 'snapshot' }] } as Event,
      { type: 'reset', watch: 'w', reason } as Event,
      ...upserts,
      { type: 'end_of_snapshot', watch: 'w', revision: String(revision), count: upserts.length } as Event,
    );
  }

  refuse(error: Error): void {
    this.#end.reject(error);
  }
}

export const upsert = (key: string, revision: number, value: unknown): Event =>
  ({ type: 'upsert', watch: 'w', key, revision: String(revision), value }) as Event;

export const remove = (key: string, revision: number): Event => ({ type: 'delete', watch: 'w', key, revision: String(revision) }) as Event;

/** What adapters follow: the watch w over a line, with its listeners counted. */
export class Counted<V = number> {
  readonly line = new Line();
  readonly tide = this.line.follow<V>();
  readonly store: Store<V> = this.tide.store('w');
  readonly watch = 'w';
  readonly #listeners = new Set<object>();

  get listeners(): number {
    return this.#listeners.size;
  }

  get view(): Store<V>['view'] {
    return this.store.view;
  }

  subscribe(run: Parameters<Store<V>['subscribe']>[0]): () => void {
    const listener = {};
    this.#listeners.add(listener);
    const end = this.store.subscribe(run);
    return () => {
      this.#listeners.delete(listener);
      end();
    };
  }

  /** Waits for the request, and sends a snapshot. */
  async snapshot(revision: number, values: Record<string, unknown>): Promise<void> {
    await this.line.opened;
    this.line.snapshot(revision, values);
  }
}

export const status = (state: string): Event =>
  ({ type: 'status', watch: 'w', state, since: new Date(0).toISOString(), reason: 'told' }) as Event;
