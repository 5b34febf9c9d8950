import type { Event, HelloEvent } from './protocol.js';
import { Store } from './store.js';
import type { ConnectionState } from './view.js';

/**
 * The stores of one connection, and the newest id that it received. An id holds
 * the positions of all watches of its stream, and completes them all.
 */
export class Stores {
  /** The newest id, from which the next stream resumes. */
  id = '';
  connection: ConnectionState = { state: 'connecting', since: Date.now(), reason: '' };

  readonly #wanted = new Map<string, Store>();
  // Watches that were removed, while the newest id still names them: one that is added
  // again resumes from the id, and so must have its resources.
  readonly #parked = new Map<string, Store>();
  #streamed: string[] = []; // the watches of the open stream

  /** The query of a request for all watches: `watch=a&watch=b&prefix.b=…`. */
  get query(): URLSearchParams {
    const query = new URLSearchParams();
    for (const { watch } of this.#wanted.values()) query.append('watch', watch);
    for (const { watch, prefix } of this.#wanted.values()) if (prefix) query.append(`prefix.${watch}`, prefix);
    return query;
  }

  get empty(): boolean {
    return this.#wanted.size === 0;
  }

  /** The watches that the last stream did not have; none if it had none of the current ones. */
  get added(): string[] {
    const added = [...this.#wanted.keys()].filter((watch) => !this.#streamed.includes(watch));
    return added.length < this.#wanted.size ? added : [];
  }

  get(watch: string): Store | undefined {
    return this.#wanted.get(watch);
  }

  /** Returns the store of a watch, limited to the keys that begin with prefix; adds it if needed. */
  add(watch: string, prefix = ''): Store {
    const wanted = this.#wanted.get(watch);
    if (wanted && wanted.prefix !== prefix) {
      throw new Error(`the watch ${watch} is followed with the prefix ${JSON.stringify(wanted.prefix)}: remove it first`);
    }
    return wanted ?? this.#revive(watch, prefix);
  }

  #revive(watch: string, prefix: string): Store {
    const parked = this.#parked.get(watch);
    const store = parked?.prefix === prefix ? parked : new Store(watch, prefix, this.connection);
    this.#parked.delete(watch);
    this.#wanted.set(watch, store);
    store.publish(this.connection);
    return store;
  }

  /** Removes a watch; error is the reason, unless it was asked for. */
  remove(watch: string, error?: Error): void {
    const store = this.#wanted.get(watch);
    if (!store) return;
    this.#wanted.delete(watch);
    if (!error) this.#parked.set(watch, store);
    store.publish(closed(error));
  }

  /** A stream begins. It is the first one, or replaces one that was lost or healthy. */
  open({ watches }: HelloEvent): void {
    const renewing = this.connection.state === 'open';
    this.connection = { state: 'open', since: Date.now(), reason: '' };
    this.#streamed = watches.map(({ watch }) => watch);
    for (const watch of this.#streamed) this.#find(watch)?.begin(renewing);
  }

  take(event: Event): void {
    if ('watch' in event) this.#find(event.watch)?.take(event);
  }

  /** An id arrived: everything before it is complete. */
  commit(id: string): void {
    this.id = id;
    for (const watch of this.#streamed) this.#find(watch)?.commit(id);
    for (const watch of this.#parked.keys()) {
      if (!this.#streamed.includes(watch)) this.#parked.delete(watch);
    }
  }

  /** Shows what arrived since the last call. */
  publish(): void {
    for (const store of this.#wanted.values()) store.publish(this.connection);
  }

  /** The connection is lost, or closed for good. */
  disconnect(connection: ConnectionState): void {
    this.connection = connection;
    for (const store of this.#all()) store.lost();
    this.publish();
  }

  #find(watch: string): Store | undefined {
    return this.#wanted.get(watch) ?? this.#parked.get(watch);
  }

  #all(): Store[] {
    return [...this.#wanted.values(), ...this.#parked.values()];
  }
}

const closed = (error?: Error): ConnectionState =>
  ({ state: 'closed', since: Date.now(), reason: error?.message ?? '', ...(error && { error }) });
