import { Derived, type DerivedView, freshnessOf } from './derived.js';
import { attempt, type Readable } from './listeners.js';
import type { Changes } from './replica.js';
import { mapKey, type Resource } from './resource.js';
import { SortedList } from './sorted_list.js';
import type { View } from './view.js';

export interface QueryOptions<V> {
  /** Selects resources; all unless set. It must depend on the resource alone. One for which it throws is not selected. */
  readonly filter?: ((resource: Resource<V>) => boolean) | undefined;
  /** The order, as for `Array.sort`; resources that are equal by it come by key, as all do unless it is set. One that it cannot even compare with itself, since it throws, comes last. */
  readonly compare?: ((a: Resource<V>, b: Resource<V>) => number) | undefined;
}

/** The resources of a query, in its order. Like those of a view it is no copy: `[...rows]` stands still. */
export interface Rows<V> extends Iterable<Resource<V>> {
  readonly size: number;
  at(index: number): Resource<V> | undefined;
  /** Returns the rows from start up to end, for instance those that are visible. */
  slice(start: number, end: number): Array<Resource<V>>;
}

export interface QueryView<V> extends DerivedView {
  /** Another object whenever a row has changed. */
  readonly rows: Rows<V>;
}

/** A filtered and sorted result that follows a store. */
export interface Query<V> {
  readonly view: QueryView<V>;
  /** Calls run at once, and after each change, until the returned function is called. The keys are those whose rows were set, moved or removed. */
  subscribe(run: (view: QueryView<V>, changes: Changes) => void): () => void;
  /** Ends it: its view is `closed`, and subscribe throws. */
  close(): void;
}

/**
 * Returns the resources of a store that a filter selects, in order. After a change it costs time for the changed keys,
 * each with the logarithm of the number of rows; after a reset, that of sorting them.
 */
export const query = <V>(store: Readable<V>, options: QueryOptions<V> = {}): Query<V> => new LiveQuery(store, options);

class LiveQuery<V> extends Derived<V, QueryView<V>, Changes> implements Query<V> {
  readonly #list: SortedList<Resource<V>>;
  readonly #selected = new Map<string, Resource<V>>();
  readonly #filter: (resource: Resource<V>) => boolean;
  #rows!: Rows<V>;

  constructor(store: Readable<V>, { filter = () => true, compare = () => 0 }: QueryOptions<V>) {
    super();
    this.#filter = filter;
    this.#list = new SortedList(total(compare));
    this.follow(store);
  }

  protected update({ resources }: View<V>, { replaced, keys }: Changes): Changes | undefined {
    if (replaced) return this.#fill(resources);
    const changed = new Set<string>();
    for (const key of keys) if (this.#set(key, resources.get(key))) changed.add(key);
    return changed.size > 0 ? { replaced, keys: changed } : undefined;
  }

  protected derive(view: View<V>, changed: boolean): QueryView<V> {
    if (changed) this.#rows = rowsOf(this.#list);
    return { ...freshnessOf(view), rows: this.#rows };
  }

  protected nothing(): Changes {
    return { replaced: false, keys: new Set() };
  }

  protected everything(): Changes {
    return { replaced: false, keys: new Set(this.#selected.keys()) };
  }

  #fill(resources: ReadonlyMap<string, Resource<V>>): Changes {
    this.#selected.clear();
    for (const [key, resource] of resources) if (this.#selects(resource)) this.#selected.set(key, resource);
    this.#list.fill([...this.#selected.values()]);
    return { replaced: true, keys: new Set() };
  }

  #set(key: string, resource: Resource<V> | undefined): boolean {
    const before = this.#selected.get(key);
    const after = resource && this.#selects(resource) ? resource : undefined;
    if (before === after) return false;
    if (before) this.#list.remove(before);
    if (after) {
      this.#list.insert(after);
      this.#selected.set(key, after);
    } else this.#selected.delete(key);
    return true;
  }

  #selects(resource: Resource<V>): boolean {
    let selects = false;
    attempt(() => {
      selects = this.#filter(resource);
    });
    return selects;
  }
}

/**
 * A query for the adapters of libraries: it follows its store only while something is subscribed to it. A render that
 * is thrown away leaves nothing behind, and one that begins again has a query that goes on.
 */
export class ObservedQuery<V> extends LiveQuery<V> {
  #observers = 0;

  constructor(
    private readonly store: Readable<V>,
    options: QueryOptions<V>,
  ) {
    super(store, options);
    this.pause();
  }

  override get view(): QueryView<V> {
    if (!this.#observers && !this.isOf(this.store)) {
      this.follow(this.store);
      this.pause();
    }
    return super.view;
  }

  override subscribe(run: (view: QueryView<V>, changes: Changes) => void): () => void {
    const end = super.subscribe(run);
    if (!this.#observers++) this.follow(this.store);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      end();
      if (!--this.#observers) this.pause();
    };
  }
}

/** Returns an order of all resources, also of those for which compare throws. */
function total<V>(compare: NonNullable<QueryOptions<V>['compare']>): (a: Resource<V>, b: Resource<V>) => number {
  const known = new WeakMap<Resource<V>, boolean>();
  const attempted = (a: Resource<V>, b: Resource<V>): number | undefined => {
    let order: number | undefined;
    attempt(() => {
      order = compare(a, b);
    });
    return order;
  };
  const comparable = (one: Resource<V>): boolean => {
    const is = known.get(one) ?? attempted(one, one) !== undefined;
    known.set(one, is);
    return is;
  };
  return (a, b) => {
    const [left, right] = [comparable(a), comparable(b)];
    return Number(right) - Number(left) || (left && attempted(a, b)) || byKey(a, b);
  };
}

function byKey(a: Resource, b: Resource): number {
  const [left, right] = [mapKey(a), mapKey(b)];
  return left < right ? -1 : Number(left > right);
}

const rowsOf = <V>(list: SortedList<Resource<V>>): Rows<V> => ({
  get size() {
    return list.size;
  },
  at: (index) => list.at(index),
  slice: (start, end) => list.slice(start, end),
  [Symbol.iterator]: () => list[Symbol.iterator](),
});
