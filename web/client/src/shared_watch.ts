import type { Changes } from './replica.js';
import type { Store } from './store.js';
import { unique } from './unique_id.js';
import type { View } from './view.js';
import type { Watches } from './watch.js';

// So many keys that changed lately are remembered, for tabs that come back.
const remembered = 10_000;

type Lines = Watches<Record<string, string>>;

/**
 * A watch that the hub follows, with what changed lately: a tab that comes back
 * gets that instead of everything.
 *
 * It has positions of its own, since those of a gateway do not say to whom they
 * apply of several watches: how many changes there were since the last snapshot.
 */
export class Followed {
  readonly #listeners = new Set<(changes: Changes) => void>();
  readonly #log = new Map<string, number>(); // key → the number of its last change, oldest first
  #epoch = '';
  #changes = 0;
  #forgotten = 0; // changes up to this one may be missing in the log
  #prefix: string | undefined;
  #store: WeakRef<Store<string>> | undefined; // the connection lets go of one that rests while others go on

  constructor(private readonly tide: Lines, readonly watch: string) {}

  get view(): View<string> {
    return this.#store!.deref()!.view; // it is followed, as long as there is a listener
  }

  /** For good: it can only be followed anew. */
  get closed(): boolean {
    return this.view.state === 'closed';
  }

  get resting(): boolean {
    return this.#listeners.size === 0;
  }

  /**
   * Follows it for a tab as well, in which the keys with this prefix matter. What
   * is followed is what all of them have in common, and each stream takes its own
   * out of it: a watch that was followed twice would be two connections.
   */
  join(prefix: string, listener: (changes: Changes) => void): () => void {
    const wide = this.#prefix === undefined ? prefix : common(this.#prefix, prefix);
    if (wide !== this.#prefix && !this.resting) this.tide.remove(this.watch);
    this.#prefix = wide;
    this.#adopt(this.tide.add({ watch: this.watch, prefix: wide }));
    this.#listeners.add(listener);
    return () => {
      if (this.#listeners.delete(listener) && this.resting) this.tide.remove(this.watch);
    };
  }

  /** Where a stream with this prefix is that was told everything. */
  position(prefix: string): string {
    return `${this.#start}${this.#changes}:${encodeURIComponent(prefix)}`;
  }

  /** The keys that changed since a position, if that is known. */
  since(lastEventId: string, prefix: string): Set<string> | undefined {
    const start = this.#start;
    const position = lastEventId.split(',').find((one) => one.startsWith(start));
    const [changes, narrowed] = position?.slice(start.length).split(':') ?? [];
    if (narrowed !== encodeURIComponent(prefix) || Number(changes) < this.#forgotten) return undefined;
    return new Set([...this.#log].filter(([, change]) => change > Number(changes)).map(([key]) => key));
  }

  get #start(): string {
    return `${encodeURIComponent(this.watch)}@${this.#epoch}:`;
  }

  // The store of before, when it rested meanwhile: then nothing was missed, since
  // it was listened to all the time.
  #adopt(store: Store<string>): void {
    if (store === this.#store?.deref()) return;
    const current = this.#store = new WeakRef(store);
    this.#take({ replaced: true, keys: new Set() });
    store.subscribe((_, changes) => {
      if (this.#store === current) this.#take(changes);
    });
  }

  #take(changes: Changes): void {
    if (changes.replaced) this.#begin();
    else if (changes.keys.size > 0) this.#note(changes.keys);
    for (const listener of this.#listeners) listener(changes);
  }

  #begin(): void {
    this.#epoch = unique();
    this.#log.clear();
    this.#changes = this.#forgotten = 0;
  }

  #note(keys: ReadonlySet<string>): void {
    this.#changes++;
    for (const key of keys) {
      this.#log.delete(key);
      this.#log.set(key, this.#changes);
    }
    for (const [key, change] of this.#log) {
      if (this.#log.size <= remembered) return;
      this.#forgotten = change;
      this.#log.delete(key);
    }
  }
}

function common(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  if (/[\ud800-\udbff]/.test(a[length - 1] ?? '')) length--; // not half a character
  return a.slice(0, length);
}
