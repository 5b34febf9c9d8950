import { hexOf } from './digest.js';
import { Hashed } from './hashed.js';
import { added, attempt, type Listener, Listeners, type Readable } from './listeners.js';
import type { Event, UpsertEvent } from './protocol.js';
import type { Mendable } from './repair.js';
import { type Changes, Replica } from './replica.js';
import { mapKey, type Resource } from './resource.js';
import type { HashedResource, Snapshot } from './snapshot.js';
import { type ConnectionState, freshness, type HubStatusEvent, type View } from './view.js';
import type { Hash } from './xxh64.js';

/** Called when what a store shows was found to be what the gateway has, by its digest. repaired: how many resources differed before. */
export type OnVerify = (store: Store, found: { readonly repaired: number }) => void;

/** What moves the window of a store, if it can be moved on its stream. */
export interface Moving {
  /** What is shown is not the window that is wanted. */
  readonly moving: boolean;
  /** A request is made with the definition that the store has now. */
  requested(): void;
  /** Its stream is open. */
  begun(): void;
  /** What has arrived is shown. */
  published(): void;
}

const none: Changes = { replaced: false, keys: new Set() };

/**
 * One watch, or a part of it: its resources, their freshness, and the listeners.
 *
 * `subscribe` follows the contract of Svelte's stores: the listener is called at
 * once, and again after each change. A change is a consistent state of the resources,
 * or another freshness; changes that arrive together are one.
 */
export class Store<V = unknown> implements Readable<V> {
  readonly #replica: Replica<V>;
  readonly #listeners = new Listeners<View<V>>();
  #status: HubStatusEvent | undefined;
  #view: View<V>;
  #position: string;
  #repaired = 0; // resources that differed, since what is shown was verified
  #renewing: number | undefined; // since when a stream takes the place of a healthy one, for a short time
  /** @internal A position that no id has yet. */
  initial: string;
  /** @internal How often the page itself has added it; what pools and windows use does not count. */
  added = 0;
  /** @internal How many pools and windows use it. */
  uses = 0;
  /** @internal How often in a row what it holds could not be verified. */
  failures = 0;
  /** @internal How often in a row the gateway no longer had the state that it was to be verified with. */
  gone = 0;
  /** @internal Whether the last attempt to verify it has failed; false also once there was no answer for now. */
  failed: boolean | undefined;
  /** @internal */
  moving: Moving | undefined;
  /** @internal What it shows may not be of its definition, or another store has the same one: it is not found by it. */
  apart = false;

  /** @internal query: its part of the query of a stream: the watch, and what of it. */
  constructor(
    readonly watch: string,
    /** @internal */
    public query: string,
    connection: ConnectionState,
    initial?: Snapshot,
    private readonly keysFirst = '',
    private readonly onVerify?: OnVerify,
  ) {
    const replica = (this.#replica = new Replica<V>(initial, keysFirst !== ''));
    this.#position = this.initial = ownPosition(watch, initial?.position);
    this.#view = {
      ...connection,
      state: 'stale', // until it is published for the first time
      since: initial?.since ?? connection.since,
      resources: replica.shown,
      revision: replica.revision,
    };
  }

  /** The current view: the same object until something in it changes. */
  get view(): View<V> {
    return this.#view;
  }

  get resources(): View<V>['resources'] {
    return this.#view.resources;
  }

  get state(): View<V>['state'] {
    return this.#view.state;
  }

  /**
   * The position of what is shown, from which a stream can resume; empty before the
   * first snapshot. Opaque. It may name other watches of the connection as well, which
   * a server ignores if they are not requested.
   */
  get position(): string {
    return this.#position;
  }

  /**
   * Calls run at once, with all keys as changed, and after each change, until the returned
   * function is called. If the first call throws, so does subscribe, and there is no other.
   */
  subscribe(run: Listener<V>): () => void {
    return this.#listeners.add(run, this.#view, added(this.resources));
  }

  /** @internal What a request for the watch has besides its query: the keys that come first. */
  get beginning(): string {
    const { watch, keysFirst } = this;
    return keysFirst && !this.#replica.complete ? `&${new URLSearchParams({ [`first.${watch}`]: keysFirst })}` : '';
  }

  /** @internal What is shown, in step with the position also while listeners are called. */
  get shown(): Pick<Replica<V>, 'shown' | 'revision'> {
    return this.#replica;
  }

  /**
   * @internal A stream begins. renewing: it takes the place of a healthy one, and the
   * short gap is not reported.
   */
  begin(renewing: boolean): void {
    this.#status = undefined;
    this.#renewing = renewing && this.state === 'in_sync' ? Date.now() : undefined;
    this.#replica.begin();
    this.moving?.begun();
  }

  /** @internal hash: of the resource of an upsert, if it is known. */
  take(event: Event, hash?: Hash): void {
    if (event.type === 'status') this.#status = event;
    // A stream begins another window with a reset, too.
    if (event.type === 'status' || (event.type === 'reset' && !this.moving?.moving)) this.#renewing = undefined;
    this.#replica.take(event, hash);
  }

  /** @internal */
  commit(position: string): void {
    this.initial = '';
    this.#replica.commit();
    this.#advanced(position);
  }

  /** @internal What differed is mended, of so many resources. position: that of the newest id. */
  mended(position: string, repaired: number): void {
    this.#replica.mended();
    this.#repaired += repaired;
    this.#advanced(position);
  }

  #advanced(position: string): void {
    if (this.#replica.behind) this.overdue();
    if (this.#replica.inconsistent) return;
    this.#position = position;
    this.#renewing = undefined;
    this.failures = 0;
    this.gone = 0;
  }

  /** @internal What it holds, where that is not what the gateway has; undefined while it is not known to differ. */
  get differing(): Mendable | undefined {
    return this.#replica.differs ? this.#replica : undefined;
  }

  /** @internal A resource that differs has been read. */
  mend(event: UpsertEvent, hash: Hash | undefined): void {
    this.#replica.mend(mapKey(event), event, hash);
  }

  /** @internal The digest of what it holds can be computed. */
  get verifiable(): boolean {
    return this.#replica.verifiable;
  }

  /** @internal The position of what is shown, of this watch alone. */
  get ownPosition(): string {
    return ownPosition(this.watch, this.#position);
  }

  /** @internal A snapshot or a catch-up has not ended. */
  get inconsistent(): boolean | undefined {
    return this.#replica.inconsistent;
  }

  /** @internal The number of the newest move on this stream that what is shown includes. */
  get moved(): number {
    return this.#replica.moved;
  }

  /** @internal Why what has arrived cannot be all of it; empty if it may be. */
  get miscounted(): string {
    return this.#replica.miscounted;
  }

  /** @internal If a stream that takes the place of a healthy one has not caught up by now, that is reported. */
  overdue(): void {
    if (this.#renewing) this.#view = { ...this.#view, state: 'stale', since: this.#renewing };
    this.#renewing = undefined;
  }

  /** @internal */
  lost(): void {
    this.#status = undefined;
    this.#renewing = undefined;
    this.#replica.lost();
  }

  /** @internal Shows what arrived, and calls the listeners if the view changed. */
  publish(connection: ConnectionState): void {
    const view = this.#current(connection);
    const changes = this.#replica.changes();
    if (changes || !same(view, this.#view)) {
      this.#view = view;
      this.#listeners.call(view, changes ?? none);
    }
    this.moving?.published();
    if (!this.#replica.verified()) return;
    const repaired = this.#repaired;
    this.#repaired = 0;
    attempt(() => this.onVerify?.(this as Store, { repaired }));
  }

  #current(connection: ConnectionState): View<V> {
    if (this.#renewing && connection.state === 'open') return this.#view;
    const { shown, revision, place, first } = this.#replica;
    const verifiedAt = this.#replica.verifiedAt ?? verifiedBefore(this.#status, this.#view);
    return {
      ...freshness(this.#replica, connection, this.#status, this.#view),
      resources: shown,
      revision,
      ...(verifiedAt && { verifiedAt }),
      ...(first && { first }),
      ...(place && { place }),
      ...(connection.maxRate && { maxRate: connection.maxRate }),
    };
  }
}

/** Returns a snapshot of a store; undefined before the first snapshot. It takes time in proportion to the resources. */
export function snapshot<V>(store: Store<V>): Snapshot<V> | undefined {
  const { watch, shown, view } = store;
  if (!store.position) return undefined;
  const position = ownPosition(watch, store.position);
  const since = view.state === 'in_sync' ? Date.now() : view.since;
  return { resources: Array.from(shown.shown.values(), withHash), revision: shown.revision, position, since };
}

function withHash<V>(resource: Resource<V>): HashedResource<V> {
  const hash = Hashed.hashOf(resource);
  return hash === undefined ? resource : { ...resource, hash: hexOf(hash) };
}

// Tabs learn from their hub when it has verified.
const verifiedBefore = (status: HubStatusEvent | undefined, view: View) => Date.parse(status?.verified_at ?? '') || view.verifiedAt;

const same = (a: View, b: View) => Object.keys({ ...a, ...b }).every((field) => a[field as keyof View] === b[field as keyof View]);

// Of the id of a stream of several watches, only the position of this one is known to belong to the resources.
const ownPosition = (watch: string, id = '') => id.match(/[!-+\--~]+/g)?.find((one) => one.startsWith(`${watch}@`)) ?? '';
