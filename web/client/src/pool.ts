import { canonical, type WatchSpec } from './spec.js';
import type { Store } from './store.js';
import { timer } from './timer.js';
import type { Watches } from './watch.js';

export interface PoolOptions {
  /** How long a watch stays followed after its last use, in ms; 10 s unless set. */
  readonly lingerMs?: number;
  /** How many watches stay followed without a use, the last ones; 4 unless set. */
  readonly maxLingering?: number;
}

/** A store for as long as it is used. */
export interface Use<V = unknown> {
  readonly store: Store<V>;
  /** Ends the use. Only the first call counts. */
  release(): void;
}

/** Stores that several parts of a page share. */
export interface Pool<Values = Record<string, unknown>> {
  /** Follows a watch, or a part of it, unless it is followed. All uses of the same definition have one store. A watch whose store was closed, by an error or by the page, is followed again. */
  use<Name extends keyof Values & string>(spec: WatchSpec<Name>): Use<Values[Name]>;
  /** Reports whether a watch, or a part of it, is followed here: it is used, or was a moment ago. */
  follows(spec: WatchSpec<keyof Values & string>): boolean;
  /** Stops following what is not used, at once. */
  clear(): void;
}

interface Entry {
  readonly spec: WatchSpec;
  readonly store: Store;
  users: number;
  timer?: ReturnType<typeof setTimeout>;
}

// The pools that need each definition of some watches: none takes it away from another one, or from the page itself.
const all = new WeakMap<Watches, Map<string, Set<StorePool>>>();

/**
 * Counts the uses of the watches of tide: the first one follows a watch, and some time after
 * the last one is released, it is removed. Watches that the page itself has added, before or after, stay followed, and several
 * pools count together.
 */
export const pool = <Values = Record<string, unknown>>(tide: Watches<Values>, options: PoolOptions = {}): Pool<Values> =>
  new StorePool(tide as unknown as Watches, options) as unknown as Pool<Values>;

class StorePool implements Pool {
  readonly #entries = new Map<string, Entry>(); // by definition
  readonly #lingering = new Set<string>(); // of those without a use, the oldest first
  readonly #holders: Map<string, Set<StorePool>>;
  readonly #lingerMs: number;
  readonly #maxLingering: number;

  constructor(
    private readonly tide: Watches,
    { lingerMs = 10_000, maxLingering = 4 }: PoolOptions,
  ) {
    this.#holders = all.get(tide) ?? new Map();
    all.set(tide, this.#holders);
    this.#lingerMs = lingerMs;
    this.#maxLingering = maxLingering;
  }

  use(spec: WatchSpec): Use {
    const { query } = canonical(spec);
    const entry = this.#entry(query, spec);
    entry.users++;
    clearTimeout(entry.timer);
    this.#lingering.delete(query);
    let used = true;
    const release = () => {
      if (used) this.#release(query, entry);
      used = false;
    };
    return { store: entry.store, release };
  }

  follows(spec: WatchSpec): boolean {
    return this.#entries.has(canonical(spec).query);
  }

  clear(): void {
    for (const query of this.#lingering) this.#remove(query);
  }

  #entry(query: string, spec: WatchSpec): Entry {
    const before = this.#entries.get(query);
    if (before?.store.state === 'closed')
      this.#remove(query); // by an error, or by the page
    else if (before) return before;
    this.#holders.set(query, (this.#holders.get(query) ?? new Set()).add(this));
    const entry = { spec, store: this.tide.add(spec), users: 0 };
    entry.store.added--; // not by the page
    this.#entries.set(query, entry);
    return entry;
  }

  #current(spec: WatchSpec): Store | undefined {
    try {
      return this.tide.store(spec);
    } catch {
      return undefined;
    }
  }

  #release(query: string, entry: Entry): void {
    if (--entry.users > 0 || this.#entries.get(query) !== entry) return; // it may have been replaced
    entry.timer = timer(() => this.#remove(query), this.#lingerMs);
    this.#lingering.add(query);
    const [oldest] = this.#lingering;
    if (this.#lingering.size > this.#maxLingering) this.#remove(oldest!);
  }

  #remove(query: string): void {
    const entry = this.#entries.get(query)!;
    clearTimeout(entry.timer);
    this.#lingering.delete(query);
    this.#entries.delete(query);
    const pools = this.#holders.get(query)!;
    pools.delete(this);
    if (!pools.size) this.#holders.delete(query);
    const { spec, store } = entry;
    if (this.#current(spec) !== store) return; // the page has removed it, and may follow it again
    if (store.view.error || !(pools.size || store.added)) this.tide.remove(spec);
  }
}
