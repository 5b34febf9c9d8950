import type { RawSnapshot } from './initial_snapshots.js';
import { Mover } from './mover.js';
import type { Changes } from './replica.js';
import type { Definition, WatchSpec } from './spec.js';
import type { Store } from './store.js';
import { uniqueId } from './unique_id.js';
import type { View } from './view.js';
import type { Watches } from './watch.js';

// The number of recently changed keys that are remembered, for tabs that come back.
const maxRemembered = 10_000;

// The time after which keys are no longer followed that no tab wants any more, while others of the watch are.
const narrowMs = 30_000;

type RawWatches = Watches<Record<string, string>>;

/** What a stream comes with. */
export interface Beginning {
  readonly snapshot?: RawSnapshot | undefined;
  /** The keys of what comes before all others; empty: none. */
  readonly first?: string;
}

/** What of a watch is shared: everything that defines it except for the prefix of its keys. Windows and counts have their own. */
export type SharedSpec = { readonly watch: string } & Definition;

/**
 * A watch, or a part of it, that the hub follows for any number of streams, with its recent changes:
 * a tab that comes back receives those instead of everything.
 *
 * It has positions of its own, which count the changes since the last snapshot: a
 * position of the gateway does not say which of several watches it applies to.
 */
export class SharedWatch {
  readonly #listeners = new Map<(changes: Changes) => void, string>(); // with the prefix of each
  readonly #log = new Map<string, number>(); // key → the number of its last change, oldest first
  #epoch = '';
  #changes = 0;
  #forgotten = 0; // changes up to this one may be missing from the log
  #prefix: string | undefined;
  #narrowing: ReturnType<typeof setTimeout> | undefined;
  #mover: Mover | undefined; // of a window that was moved
  #untold = false; // the listeners have not been called since
  #store: WeakRef<Store<string>> | undefined; // while idle, the connection may drop it

  constructor(
    private readonly tide: RawWatches,
    /** Of a window that moves: where it is to be. */
    public spec: SharedSpec,
  ) {}

  get view(): View<string> {
    return this.#store!.deref()!.view; // followed for as long as there is a listener
  }

  /** Closed for good: following the watch again requires a new instance. */
  get closed(): boolean {
    return this.#store?.deref()?.view.state === 'closed'; // while idle, it may be gone
  }

  /** What it has is that of the window from before a move. */
  get moving(): boolean {
    return this.#mover?.moving ?? false;
  }

  /** One stream is subscribed to it. */
  get alone(): boolean {
    return this.#listeners.size === 1;
  }

  /** Moves the window that it follows. The listeners are called when it has moved, too. */
  move(spec: SharedSpec): void {
    this.#mover ??= new Mover(this.tide as unknown as Watches, this.#store!.deref() as Store, () => this.#moved());
    this.spec = spec;
    this.#untold = true;
    this.#mover.move(spec);
  }

  #moved(): void {
    if (!this.#untold || this.moving) return;
    this.#untold = false;
    for (const listener of this.#listeners.keys()) listener({ replaced: false, keys: new Set() });
  }

  /** No stream is subscribed to it. */
  get idle(): boolean {
    return this.#listeners.size === 0;
  }

  /**
   * Subscribes a stream to the keys with a prefix. What is followed is the common
   * prefix of all streams, and each filters its own keys: following the watch twice
   * would take two connections. If nothing is known yet, it goes on from the snapshot that the
   * stream comes with.
   */
  subscribe(prefix: string, listener: (changes: Changes) => void, { snapshot, first }: Beginning = {}): () => void {
    const wide = this.#prefix === undefined ? prefix : commonPrefix(this.#prefix, prefix);
    if (wide !== this.#prefix && !this.idle) this.tide.remove(this.#followed);
    this.#prefix = wide;
    const initial = wide === prefix ? snapshot : undefined;
    if (!this.#mover) this.#setStore(this.tide.add({ ...this.#followed, initial, first })); // or else it is not found on its way
    this.#listeners.set(listener, prefix);
    this.#narrowLater();
    return () => {
      if (!this.#listeners.delete(listener)) return;
      if (this.idle) this.#rest();
      this.#narrowLater();
    };
  }

  #rest(): void {
    this.#mover?.end();
    this.#mover = undefined;
    const { watch } = this.spec;
    const store = this.#store!.deref() as Store;
    this.tide.connectionOf(store)?.remove(watch);
  }

  // Each change of what is followed costs a snapshot: tabs may come back, or others may leave too.
  #narrowLater(): void {
    clearTimeout(this.#narrowing);
    const common = this.idle ? this.#prefix : [...this.#listeners.values()].reduce(commonPrefix);
    if (common !== this.#prefix) this.#narrowing = setTimeout(() => this.#narrow(common!), narrowMs);
  }

  #narrow(prefix: string): void {
    if (this.closed) return;
    this.tide.remove(this.#followed);
    this.#prefix = prefix;
    this.#setStore(this.tide.add(this.#followed));
  }

  get #followed(): Exclude<WatchSpec, string> {
    return this.spec.order || this.spec.by ? this.spec : { ...this.spec, prefix: this.#prefix! };
  }

  /** It has begun with a snapshot of this position, and has received nothing since. */
  isAt(position: string): boolean {
    return position !== '' && this.#store?.deref()?.initial === position; // a store that has received something has none
  }

  /** The position of a stream with this prefix that has received everything. */
  position(prefix: string): string {
    return `${this.#start}${this.#changes}:${encodeURIComponent(prefix)}`;
  }

  /** The keys that changed since a position, or undefined if that is unknown. */
  since(lastEventId: string, prefix: string): Set<string> | undefined {
    const start = this.#start;
    const position = lastEventId.split(',').find((one) => one.startsWith(start));
    const [changes, narrowed] = position?.slice(start.length).split(':') ?? [];
    if (narrowed !== encodeURIComponent(prefix) || Number(changes) < this.#forgotten) return undefined;
    return new Set([...this.#log].filter(([, change]) => change > Number(changes)).map(([key]) => key));
  }

  get #start(): string {
    return `${encodeURIComponent(this.spec.watch)}@${this.#epoch}:`;
  }

  // If it is the same store as before an idle time, nothing was missed: it has been
  // listened to all the time.
  #setStore(store: Store<string>): void {
    if (store === this.#store?.deref()) return;
    const current = (this.#store = new WeakRef(store));
    this.#changed({ replaced: true, keys: new Set() });
    let known = false; // the first call reports what it has begun with
    store.subscribe((_, changes) => {
      if (known && this.#store === current) this.#changed(changes);
      known = true;
    });
  }

  #changed(changes: Changes): void {
    if (changes.replaced) this.#resetLog();
    else if (changes.keys.size > 0) this.#remember(changes.keys);
    for (const listener of this.#listeners.keys()) listener(changes);
  }

  #resetLog(): void {
    this.#epoch = uniqueId();
    this.#log.clear();
    this.#changes = this.#forgotten = 0;
  }

  #remember(keys: ReadonlySet<string>): void {
    this.#changes++;
    for (const key of keys) {
      this.#log.delete(key);
      this.#log.set(key, this.#changes);
    }
    for (const [key, change] of this.#log) {
      if (this.#log.size <= maxRemembered) return;
      this.#forgotten = change;
      this.#log.delete(key);
    }
  }
}

function commonPrefix(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  if (/[\ud800-\udbff]/.test(a[length - 1] ?? '')) length--; // not half a character
  return a.slice(0, length);
}
