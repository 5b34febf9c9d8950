import { added, type Listener, Listeners, type Readable } from './listeners.js';
import type { Event } from './protocol.js';
import { type Changes, Replica } from './replica.js';
import type { Snapshot } from './snapshot.js';
import { type ConnectionState, freshness, type HubStatusEvent, type View } from './view.js';

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
  #renewing: number | undefined; // since when a stream takes the place of a healthy one, for a short time
  /** @internal A position that no id has yet. */
  initial: string;
  /** @internal How often the page itself has added it; that of a pool does not count. */
  added = 0;

  /** @internal query: its part of the query of a stream: the watch, and what of it. */
  constructor(
    readonly watch: string,
    /** @internal */
    readonly query: string,
    connection: ConnectionState,
    initial?: Snapshot,
  ) {
    const replica = (this.#replica = new Replica<V>(initial));
    this.#position = this.initial = ownPosition(watch, initial);
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
  }

  /** @internal */
  take(event: Event): void {
    if (event.type === 'status') this.#status = event;
    if (event.type === 'status' || event.type === 'reset') this.#renewing = undefined;
    this.#replica.take(event);
  }

  /** @internal */
  commit(position: string): void {
    this.initial = '';
    this.#replica.commit();
    if (this.#replica.behind) this.overdue();
    if (this.#replica.inconsistent) return;
    this.#position = position;
    this.#renewing = undefined;
  }

  /** @internal A snapshot or a catch-up has not ended. */
  get inconsistent(): boolean | undefined {
    return this.#replica.inconsistent;
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
    if (!changes && same(view, this.#view)) return;
    this.#view = view;
    this.#listeners.call(view, changes ?? none);
  }

  #current(connection: ConnectionState): View<V> {
    if (this.#renewing && connection.state === 'open') return this.#view;
    const { shown, revision } = this.#replica;
    return { ...freshness(this.#replica, connection, this.#status, this.#view), resources: shown, revision };
  }
}

/** Returns a snapshot of a store; undefined before the first snapshot. It takes time in proportion to the resources. */
export function snapshot<V>(store: Store<V>): Snapshot<V> | undefined {
  const { watch, shown, view } = store;
  if (!store.position) return undefined;
  const position = store.position.split(',').find((one) => one.startsWith(`${watch}@`)) ?? '';
  const since = view.state === 'in_sync' ? Date.now() : view.since;
  return { resources: [...shown.shown.values()], revision: shown.revision, position, since };
}

const same = (a: View, b: View) => Object.keys({ ...a, ...b }).every((field) => a[field as keyof View] === b[field as keyof View]);

// Of the id of a stream of several watches, only the position of this one is known to belong to the resources.
const ownPosition = (watch: string, initial?: Snapshot) =>
  initial?.position.match(/[!-+\--~]+/g)?.find((one) => one.startsWith(`${watch}@`)) ?? '';
