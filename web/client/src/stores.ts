import type { Event, UpsertEvent } from './protocol.js';
import type { CanonicalSpec } from './spec.js';
import { type OnVerify, Store } from './store.js';
import type { ConnectionState } from './view.js';
import type { Hash } from './xxh64.js';

// After so many failures in a row to verify what a store holds, the next stream brings all of it; after one more, the next
// stream has no digests.
const maxFailures = 2;

// A place that does not exist. For it, a gateway sends the digest of a state that it keeps. Where the position can be resumed it
// would send that of the newest one, which is soon gone.
const nowhere = 'none-0';

/**
 * The stores of one connection, and the newest id that it received. An id holds
 * the positions of all watches of its stream, and completes them all.
 *
 * A store that differs from what the gateway has keeps the position of what it shows, until it is mended.
 */
export class Stores {
  /** The newest id, with the positions that stores have kept. */
  id = '';
  #received = ''; // the newest id, as it came
  connection: ConnectionState = { state: 'connecting', since: Date.now(), reason: '' };

  readonly #wanted = new Map<string, Store>(); // by watch: a stream can carry each only once
  // Those that were removed, by query, while the newest request or id may still name them:
  // one that is added again is in the stream already, or resumes from the id, and so must
  // have its resources.
  readonly #parked = new Map<string, Store>();
  #requested = new Map<string, Store>();
  #maxRate: string | undefined; // that was requested
  // Those of the open stream, by watch. An event is for the store whose definition was
  // requested, and not for another one of the same watch that is wanted by now.
  #streamed = new Map<string, Store>();

  constructor(private readonly onVerify?: OnVerify) {}

  /** The query of a request for all watches: `watch=a&watch=b&prefix.b=…`. */
  get query(): string {
    return [...this.#wanted.values()].map(({ query }) => query).join('&');
  }

  /** The positions from which the next stream resumes: the newest id, and those that stores began with. */
  get position(): string {
    const ids = [this.id, ...[...this.#wanted.values()].map(({ initial }) => initial)].join().match(/[^,]+/g) ?? [];
    const places = new Map(ids.map((one) => one.split('@') as [string, string])); // at most one of each watch
    for (const [watch, { gone }] of this.#wanted) if (gone && places.has(watch)) places.set(watch, nowhere);
    return [...places].map((place) => place.join('@')).join();
  }

  /** A request is made, with a rate or without one. Returns its query. */
  request(maxRate?: string): string {
    this.#requested = new Map(this.#wanted);
    for (const { moving } of this.#wanted.values()) moving?.requested();
    this.#maxRate = maxRate;
    const beginnings = [...this.#wanted.values()].map(({ beginning }) => beginning).join('');
    return this.query + beginnings + (maxRate ? `&max_rate=${maxRate}` : '');
  }

  /** The newest request is for exactly these watches, in any order. */
  get requested(): boolean {
    return this.#requested.size === this.size && [...this.#wanted].every(([watch, store]) => this.#requested.get(watch) === store);
  }

  /** All watches of the open stream have caught up. */
  get settled(): boolean {
    return [...this.#streamed.values()].every(({ inconsistent }) => !inconsistent);
  }

  /** The number of watches. */
  get size(): number {
    return this.#wanted.size;
  }

  /** Gives up the watches for which a stream has no room: those that the last one did not have, or half of all; none if there is one watch. */
  split(): Store[] {
    const all = [...this.#wanted.values()];
    const added = all.filter((store) => this.#streamed.get(store.watch) !== store);
    const half = all.slice(Math.ceil(all.length / 2));
    const given = added.length < all.length && added.length ? added : half;
    for (const { watch } of given) this.#wanted.delete(watch);
    this.#streamed = new Map([...this.#streamed].filter(([, store]) => !given.includes(store)));
    return given;
  }

  /** Takes over a store that another connection gave up. */
  adopt(store: Store): void {
    this.#wanted.set(store.watch, store);
    store.lost();
    store.publish(this.connection);
  }

  get(watch: string): Store | undefined {
    return this.#wanted.get(watch);
  }

  /** Adds a watch that it does not have, and returns its store. */
  add({ watch, query, initial, first }: CanonicalSpec): Store {
    const store = this.#parked.get(query) ?? new Store(watch, query, this.connection, initial, first, this.onVerify);
    this.#parked.delete(query);
    store.added = 0; // it may have been removed
    this.#wanted.set(watch, store);
    store.publish(this.connection);
    return store;
  }

  /** Removes a watch that it has; error is the reason, unless it was asked for. */
  remove(watch: string, error?: Error): void {
    const store = this.#wanted.get(watch)!;
    this.#wanted.delete(watch);
    if (store.apart) this.#forget(store);
    else this.#parked.set(store.query, store);
    store.publish(closed(error));
  }

  /** A stream begins. It is the first one, or replaces one that was lost or healthy. */
  open(): void {
    const renewing = this.connection.state === 'open';
    this.connection = { state: 'open', since: Date.now(), reason: '', ...(this.#maxRate && { maxRate: this.#maxRate }) };
    this.#streamed = this.#requested;
    for (const store of this.#streamed.values()) store.begin(renewing);
  }

  /** hash: of the resource of an upsert, if it is known. */
  take(event: Event, hash?: Hash): void {
    this.#streamed.get((event as UpsertEvent).watch)?.take(event, hash); // not every event has a watch
  }

  /** The stores that hold something else than the gateway. */
  get differing(): Store[] {
    return [...this.#streamed.values()].filter(({ differing }) => differing);
  }

  /** What all stores hold can be verified, so that the next stream may rely on it. */
  get verifiable(): boolean {
    return [...this.#wanted.values()].every(({ verifiable }) => verifiable);
  }

  /** Digests have not helped: the next stream is to have none. */
  get undigested(): boolean {
    return [...this.#wanted.values()].some(({ failures }) => failures > maxFailures);
  }

  /** A store that differed is mended. */
  mended(store: Store, repaired: number): void {
    store.mended(this.#received, repaired);
    this.#settle();
  }

  /** The stream has ended. */
  ended(): void {
    for (const store of this.differing) {
      store.lost();
      if (store.failed && ++store.failures >= maxFailures) {
        this.#forget(store);
        store.gone = 0;
      }
    }
  }

  /** An id arrived: everything before it is complete. */
  commit(id: string): void {
    this.#received = id;
    for (const store of this.#streamed.values()) store.commit(id);
    // The id has the position of a watch that came with the request until the stream has
    // one of its own.
    for (const [query, store] of this.#parked) {
      const streamed = this.#streamed.get(store.watch);
      if (streamed !== store && (streamed?.position ?? id) === id) this.#parked.delete(query);
    }
    this.#settle();
  }

  // Takes over the positions of what is whole. If something was lost, it ends the stream, and the next one brings all of the watch.
  #settle(): void {
    this.id = this.#received;
    // A window that was removed on its way: nobody has the resources of its position.
    for (const store of this.#streamed.values()) if (store.apart && this.#wanted.get(store.watch) !== store) this.#forget(store);
    for (const store of this.differing) {
      this.#forget(store);
      this.id = [this.id, store.ownPosition].filter(Boolean).join();
    }
    for (const store of this.#streamed.values()) {
      if (!store.miscounted) continue;
      this.#forget(store);
      throw new Error(store.miscounted);
    }
  }

  #forget({ watch }: Store): void {
    this.id = this.id
      .split(',')
      .filter((one) => !one.startsWith(`${watch}@`))
      .join();
  }

  /** Shows what arrived since the last call. */
  publish(): void {
    for (const store of this.#wanted.values()) store.publish(this.connection);
  }

  /** What is shown is that of a stream that ended some time ago, unless the new one has caught up. */
  overdue(): void {
    for (const store of this.#streamed.values()) store.overdue();
    this.publish();
  }

  /** The connection is lost, or closed for good. */
  disconnect(connection: ConnectionState): void {
    this.connection = connection;
    for (const store of this.#streamed.values()) store.lost();
    this.publish();
  }
}

/** The state of a connection, or of a watch, that is closed; error is the reason, unless it was asked for. */
export const closed = (error?: Error): ConnectionState => ({
  state: 'closed',
  since: Date.now(),
  reason: error?.message ?? '',
  ...(error && { error }),
});
