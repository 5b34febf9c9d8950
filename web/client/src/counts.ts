import { Derived, type DerivedView, freshnessOf } from './derived.js';
import { equal } from './equal.js';
import { pool, type Use } from './pool.js';
import type { Changes } from './replica.js';
import type { Resource } from './resource.js';
import type { Definition } from './spec.js';
import type { View } from './view.js';
import type { Watches } from './watch.js';
import { compareTerms } from './window_order.js';

export type { DerivedView } from './derived.js';

/** What is counted, and by which fields; without `by`, the watch is a count that the configuration of the gateway declares. */
export type CountOptions<Name extends string = string> = { readonly watch: Name } & (
  | (Pick<Definition, 'prefix' | 'keys' | 'labels' | 'filter' | 'sum'> & Required<Pick<Definition, 'by'>>)
  | { readonly by?: never }
);

/** The resources with the same values of the fields of `by`. The same object until something in it changes. */
export interface CountedGroup {
  /** Of one field the value: a text as it is, and anything else as JSON. Of several fields a JSON array of the values. */
  readonly key: string;
  /** The values of the fields, in the order of `by`. An absent field is null, each object is `{}`, and each array `[]`. */
  readonly values: readonly unknown[];
  readonly count: number;
  /** Of the numbers of `sum`, as are the least and the greatest; missing where there are none. */
  readonly sum?: number;
  readonly min?: number;
  readonly max?: number;
}

/** Counts at one moment: a new object whenever anything in it changes. */
export interface CountsView extends DerivedView {
  /** By key, in the order of their values; another map whenever one of them has changed. */
  readonly groups: ReadonlyMap<string, CountedGroup>;
  /** The number of resources in all groups. */
  readonly total: number;
}

/** How many resources of a watch have the same values of some fields, for as long as it is followed. */
export interface LiveCounts {
  readonly view: CountsView;
  /** Calls run at once, and after each change, until the returned function is called. The keys are those of groups. */
  subscribe(run: (view: CountsView, changes: Changes) => void): () => void;
  /** Ends it: its view is `closed`, and subscribe throws. */
  close(): void;
}

/**
 * Counts the resources of a watch by the values of some fields, and adds those of another one. The gateway counts, and sends
 * only the groups that a change has changed. Parts of a page that count the same share what is sent. A `by` that is given and
 * empty throws a TypeError.
 */
export const watchCounts = <Values, Name extends keyof Values & string>(
  watches: Watches<Values>,
  options: CountOptions<Name>,
): LiveCounts => new FollowedCounts(watches as Watches, options);

type Numbers = Pick<CountedGroup, 'count' | 'sum' | 'min' | 'max'>;

class FollowedCounts extends Derived<unknown, CountsView, Changes> implements LiveCounts {
  readonly #use: Use;
  #groups: ReadonlyMap<string, CountedGroup> = new Map();
  #total = 0;

  constructor(watches: Watches, options: CountOptions) {
    super();
    // It would be left out of the request, and the resources be taken for groups.
    if (options.by !== undefined && !String([options.by]))
      throw new TypeError('by names no field: want one to four paths, or no by for a count that is declared');
    this.#use = pool(watches, { maxLingering: 0 }).use(options);
    this.follow(this.#use.store);
  }

  protected update({ resources }: View, { replaced, keys }: Changes): Changes | undefined {
    if (!replaced && keys.size === 0) return undefined;
    const same = !replaced && [...keys].every((key) => this.#groups.has(key) && resources.has(key)); // their order stays
    const all = same ? Array.from(this.#groups.keys(), (key) => resources.get(key)!) : [...resources.values()];
    const groups = all.map((resource) => this.#group(resource as Resource<Numbers>));
    if (!same) groups.sort(inOrder);
    this.#groups = new Map(groups.map((group) => [group.key, group]));
    this.#total = groups.reduce((total, { count }) => total + count, 0);
    return { replaced, keys };
  }

  #group({ key, value }: Resource<Numbers>): CountedGroup {
    const known = this.#groups.get(key);
    const group = { key, values: known?.values ?? valuesOf(key), ...value };
    return known && equal(known, group) ? known : group;
  }

  protected derive(view: View): CountsView {
    return { ...freshnessOf(view), groups: this.#groups, total: this.#total };
  }

  protected nothing(): Changes {
    return { replaced: false, keys: new Set() };
  }

  protected everything(): Changes {
    return { replaced: false, keys: new Set(this.#groups.keys()) };
  }

  override close(): void {
    super.close();
    this.#use.release();
  }
}

// An array of fewer than two values is the value of one field.
function valuesOf(key: string): readonly unknown[] {
  try {
    const value = JSON.parse(key) as unknown;
    return Array.isArray(value) && value.length > 1 ? value : [value];
  } catch {
    return [key];
  }
}

const byValues = compareTerms(['0', '1', '2', '3'].map((place) => ({ path: [place], descending: false }))); // as many as there are fields at most

function inOrder(a: CountedGroup, b: CountedGroup): number {
  return byValues(asResource(a), asResource(b));
}

const asResource = ({ key, values }: CountedGroup): Resource => ({ key, revision: '', value: { ...values } });
