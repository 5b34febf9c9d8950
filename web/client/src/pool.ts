import { canonical, type WatchSpec } from './spec.js';
import type { Store } from './store.js';
import { timer } from './timer.js';
import { addUsed, removeUnused } from './uses.js';
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
  readonly #lingerMs: number;
  readonly #maxLingering: number;

  constructor(
    private readonly tide: Watches,
    { lingerMs = 10_000, maxLingering = 4 }: PoolOptions,
  ) {
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
    const entry = { spec, store: addUsed(this.tide, spec), users: 0 };
    this.#entries.set(query, entry);
    return entry;
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
    removeUnused(this.tide, entry.spec, entry.store);
  }
}
