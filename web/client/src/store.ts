import type { HubStatusEvent } from './port.js';
import type { Event } from './protocol.js';
import { type Changes, Replica } from './replica.js';
import { type ConnectionState, freshness, type View } from './view.js';

/** Called with the current view, and with what changed since the last call. */
export type Listener<V> = (view: View<V>, changes: Changes) => void;

const none: Changes = { replaced: false, keys: new Set() };

// All keys, for a listener that knows none. Most listeners do not ask for them.
function added(resources: ReadonlyMap<string, unknown>): Changes {
  let keys: Set<string> | undefined;
  return {
    replaced: false,
    get keys() {
      return (keys ??= new Set(resources.keys()));
    },
  };
}

/** A view that listeners are to see. */
interface Call<V> {
  readonly view: View<V>;
  readonly changes: Changes;
  /** Those that were there when the view came. */
  readonly listeners: ReadonlyArray<Listener<V>>;
}

/**
 * One watch, or a part of it: its resources, their freshness, and the listeners.
 *
 * `subscribe` follows the contract of Svelte's stores: the listener is called at
 * once, and again after each change. A change is a consistent state of the resources,
 * or another freshness; changes that arrive together are one.
 */
export class Store<V = unknown> {
  readonly #replica = new Replica<V>();
  readonly #listeners = new Set<Listener<V>>();
  // A listener may change the store: its new view waits until all have seen the last one.
  #calls: Array<Call<V>> = [];
  #calling = false;
  #status: HubStatusEvent | undefined;
  #view: View<V>;
  #position = '';
  #renewing = false;

  /** @internal */
  constructor(
    readonly watch: string,
    /** @internal Its part of the query of a stream: the watch, and what of it. */
    readonly query: string,
    connection: ConnectionState,
  ) {
    this.#view = { ...connection, state: 'connecting', resources: this.#replica.shown, revision: '' };
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
    const listener: Listener<V> = (view, changes) => run(view, changes); // allows the same function to subscribe twice
    const unsubscribe = () => void this.#listeners.delete(listener);
    const nested = this.#calling;
    this.#listeners.add(listener);
    this.#calling = true;
    try {
      listener(this.#view, added(this.#view.resources));
    } catch (error) {
      unsubscribe();
      throw error;
    } finally {
      this.#calling = nested;
      this.#call();
    }
    return unsubscribe;
  }

  /**
   * @internal A stream begins. renewing: it takes the place of a healthy one, and the
   * short gap is not reported.
   */
  begin(renewing: boolean): void {
    this.#status = undefined;
    this.#renewing = renewing && this.state === 'in_sync';
    this.#replica.begin();
  }

  /** @internal */
  take(event: Event): void {
    if (event.type === 'status') this.#status = event;
    if (event.type === 'status' || event.type === 'reset') this.#renewing = false;
    this.#replica.take(event);
  }

  /** @internal */
  commit(position: string): void {
    this.#replica.commit();
    if (this.#replica.inconsistent) return;
    this.#position = position;
    this.#renewing = false;
  }

  /** @internal */
  lost(): void {
    this.#status = undefined;
    this.#renewing = false;
    this.#replica.lost();
  }

  /** @internal Shows what arrived, and calls the listeners if the view changed. */
  publish(connection: ConnectionState): void {
    const view = this.#current(connection);
    const changes = this.#replica.changes();
    if (!changes && same(view, this.#view)) return;
    this.#view = view;
    this.#calls.push({ view, changes: changes ?? none, listeners: [...this.#listeners] });
    this.#call();
  }

  // Makes the calls that wait, unless that is under way.
  #call(): void {
    if (this.#calling) return;
    this.#calling = true;
    for (let call = this.#calls.shift(); call; call = this.#calls.shift()) {
      for (const listener of call.listeners) if (this.#listeners.has(listener)) notify(listener, call);
    }
    this.#calling = false;
  }

  #current(connection: ConnectionState): View<V> {
    if (this.#renewing && connection.state === 'open') return this.#view;
    const { shown, revision } = this.#replica;
    return { ...freshness(this.#replica, connection, this.#status, this.#view), resources: shown, revision };
  }
}

function notify<V>(listener: Listener<V>, { view, changes }: Call<V>): void {
  try {
    listener(view, changes);
  } catch (error) {
    // A listener that throws must not affect the stream or other listeners.
    queueMicrotask(() => {
      throw error;
    });
  }
}

const fields = ['state', 'since', 'reason', 'error', 'resources', 'revision'] as const;

const same = (a: View, b: View) => fields.every((field) => a[field] === b[field]);
