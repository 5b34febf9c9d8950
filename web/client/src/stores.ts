import type { Event, HelloEvent } from './protocol.js';
import { Store } from './store.js';
import type { Link } from './view.js';

/**
 * The stores of one connection, and the newest id that it received. An id holds
 * the positions of all watches of its stream, and completes them all.
 */
export class Stores {
  /** The newest id: a stream goes on behind it. */
  id = '';
  link: Link = { state: 'connecting', since: Date.now(), reason: '' };

  readonly #wanted = new Map<string, Store>();
  // Watches that were removed, while the newest id still names them: whoever adds
  // one again goes on from there, and what it held must be there as well.
  readonly #parked = new Map<string, Store>();
  #streamed: string[] = []; // the watches of the stream that is open

  /** What a request for all watches asks for: `watch=a&watch=b&prefix.b=…`. */
  get query(): URLSearchParams {
    const query = new URLSearchParams();
    for (const { watch } of this.#wanted.values()) query.append('watch', watch);
    for (const { watch, prefix } of this.#wanted.values()) if (prefix) query.append(`prefix.${watch}`, prefix);
    return query;
  }

  get empty(): boolean {
    return this.#wanted.size === 0;
  }

  /** The watches that came to those of the stream before; none, if it had none that is wanted still. */
  get added(): string[] {
    const added = [...this.#wanted.keys()].filter((watch) => !this.#streamed.includes(watch));
    return added.length < this.#wanted.size ? added : [];
  }

  get(watch: string): Store | undefined {
    return this.#wanted.get(watch);
  }

  /** Adds a watch, narrowed to the keys that begin with prefix; or returns its store. */
  add(watch: string, prefix = ''): Store {
    const wanted = this.#wanted.get(watch);
    if (wanted && wanted.prefix !== prefix) {
      throw new Error(`the watch ${watch} is followed with the prefix ${JSON.stringify(wanted.prefix)}: remove it first`);
    }
    return wanted ?? this.#revive(watch, prefix);
  }

  #revive(watch: string, prefix: string): Store {
    const parked = this.#parked.get(watch);
    const store = parked?.prefix === prefix ? parked : new Store(watch, prefix, this.link);
    this.#parked.delete(watch);
    this.#wanted.set(watch, store);
    store.publish(this.link);
    return store;
  }

  /** Takes a watch out; error says why, if nobody asked for it. */
  remove(watch: string, error?: Error): void {
    const store = this.#wanted.get(watch);
    if (!store) return;
    this.#wanted.delete(watch);
    if (!error) this.#parked.set(watch, store);
    store.publish(closed(error));
  }

  /** A stream begins: the first, or in place of one that was lost, or of one that was well. */
  open({ watches }: HelloEvent): void {
    const renewing = this.link.state === 'open';
    this.link = { state: 'open', since: Date.now(), reason: '' };
    this.#streamed = watches.map(({ watch }) => watch);
    for (const watch of this.#streamed) this.#find(watch)?.begin(renewing);
  }

  take(event: Event): void {
    if ('watch' in event) this.#find(event.watch)?.take(event);
  }

  /** An id came: everything before it is complete. */
  commit(id: string): void {
    this.id = id;
    for (const watch of this.#streamed) this.#find(watch)?.commit(id);
    for (const watch of this.#parked.keys()) {
      if (!this.#streamed.includes(watch)) this.#parked.delete(watch);
    }
  }

  /** Shows what was taken since the last time. */
  publish(): void {
    for (const store of this.#wanted.values()) store.publish(this.link);
  }

  /** The connection is lost, or closed for good. */
  disconnect(link: Link): void {
    this.link = link;
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

const closed = (error?: Error): Link =>
  ({ state: 'closed', since: Date.now(), reason: error?.message ?? '', ...(error && { error }) });
