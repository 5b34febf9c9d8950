import { Derived, type DerivedView, freshnessOf } from './derived.js';
import { equal } from './equal.js';
import { Mover } from './mover.js';
import type { Changes, Place } from './replica.js';
import { mapKey, type Resource } from './resource.js';
import { canonical, type Definition } from './spec.js';
import type { Store } from './store.js';
import { addUsed, removeUnused } from './uses.js';
import type { View } from './view.js';
import type { Watches } from './watch.js';
import { compareBy } from './window_order.js';

export type { DerivedView } from './derived.js';
export type { Place } from './replica.js';
export { compareBy } from './window_order.js';

/** What a window is of, and where it begins. */
export type WindowOptions<Name extends string = string> = { readonly watch: Name } & Definition &
  Required<Pick<Definition, 'order' | 'limit'>>;

/** What changes when a window moves. Another filter or another order may take any resource in or out. */
export type Move = Pick<Definition, 'offset' | 'after' | 'limit' | 'order' | 'prefix' | 'keys' | 'labels' | 'filter'>;

/** A window at one moment: a new object whenever anything in it changes. */
export interface WindowView<V = unknown> extends DerivedView, Place {
  /** In order; another array whenever one of them has changed. A resource is the same object until it changes. */
  readonly rows: ReadonlyArray<Resource<V>>;
  /** The window has been moved, and the rows are still those from before. */
  readonly moving: boolean;
}

/** A part of a sorted watch that follows it. */
export interface LiveWindow<V = unknown> {
  readonly view: WindowView<V>;
  /** Calls run at once, and after each change, until the returned function is called. */
  subscribe(run: (view: WindowView<V>) => void): () => void;
  /** Moves the window. What it shows stays until all of the new rows are there. A mistake throws a TypeError, and nothing is moved. */
  move(to: Move): void;
  /** Ends it: its view is `closed`, and subscribe throws. */
  close(): void;
}

/**
 * Follows so many resources of a watch in an order, for a page that shows no more: only these are sent, with the number
 * of all. It is a store of its own among those of watches, with its own stream if the watch has another one. A mistake in `order`,
 * `limit` or `offset` throws a TypeError.
 */
export const watchWindow = <Values, Name extends keyof Values & string>(
  watches: Watches<Values>,
  options: WindowOptions<Name>,
): LiveWindow<Values[Name]> => new MovableWindow(watches as Watches, options) as LiveWindow as LiveWindow<Values[Name]>;

// What would be left out of a request, so that the gateway could not refuse it, and what rows cannot be sorted by.
function check({ order, limit, offset = 0 }: WindowOptions): void {
  if (!order?.length) throw new TypeError('a window has an order: want paths, such as -cpu_percent,name');
  compareBy(order);
  checkNumber('limit', limit, 1, 1_000);
  checkNumber('offset', offset, 0, 2 ** 31);
}

function checkNumber(name: string, number: number, least: number, most: number): void {
  if (!Number.isInteger(number) || number < least || number > most)
    throw new TypeError(`${name} is ${number}: want a whole number from ${least} to ${most}`);
}

const same = (a: WindowOptions, b: WindowOptions) => canonical(a).query === canonical(b).query;

class MovableWindow extends Derived<unknown, WindowView, Changes> implements LiveWindow {
  #options: WindowOptions;
  #place: Place = { total: 0, before: 0, next: '' };
  #rows: ReadonlyArray<Resource> = [];
  #store: Store;
  #mover: Mover | undefined; // of the store
  #next: { readonly options: WindowOptions; readonly leave: () => void } | undefined; // where it moves

  constructor(
    private readonly watches: Watches,
    options: WindowOptions,
  ) {
    super();
    check(options);
    this.#options = options;
    this.#store = addUsed(watches, options);
    this.follow(this.#store);
  }

  move(to: Move): void {
    const { offset: _, after: __, ...rest } = this.#target;
    const options = { ...rest, ...to } as WindowOptions;
    check(options);
    if (this.view.state === 'closed' || same(options, this.#target)) return;
    this.#next?.leave();
    this.#next = undefined;
    if (same(options, this.#options)) return this.again(); // back again
    if (this.#canMove(options)) return this.#move(options);
    const store = addUsed(this.watches, options);
    let left = false;
    let unsubscribe: (() => void) | undefined;
    const leave = () => {
      left = true;
      unsubscribe?.();
      removeUnused(this.watches, options, store);
    };
    this.#next = { options, leave };
    unsubscribe = store.subscribe((view) => {
      if (!left && (view.revision !== '' || view.state === 'closed')) this.#arrive(store, options);
    });
    if (this.#next?.options !== options) unsubscribe();
    else this.again();
  }

  // The store is that of this window alone, and only the place is another one.
  #canMove(options: WindowOptions): boolean {
    const { watches } = this;
    const store = this.#store;
    const { limit, offset, after, ...rest } = this.#options;
    const { limit: _, offset: __, after: ___, ...others } = options;
    if (!same({ ...rest, limit: 1 }, { ...others, limit: 1 })) return false;
    return store.uses === 1 && !store.added && watches.connectionOf(store) !== undefined && !watches.find(canonical(options));
  }

  #move(options: WindowOptions): void {
    this.#options = options;
    this.#mover ??= new Mover(this.watches, this.#store, () => {
      if (this.view.moving !== this.#moving) this.again();
    });
    this.#mover.move(options);
    this.again();
  }

  get #moving(): boolean {
    return this.#next !== undefined || (this.#mover?.moving ?? false);
  }

  get #target(): WindowOptions {
    return this.#next?.options ?? this.#options;
  }

  // All of the new rows are there, or the gateway refuses them.
  #arrive(store: Store, options: WindowOptions): void {
    if (this.#next?.options !== options) return;
    this.#next = undefined;
    const [before, left] = [this.#options, this.#store];
    this.#options = options;
    this.#store = store;
    this.pause();
    this.#mover?.end();
    this.#mover = undefined;
    this.follow(store);
    removeUnused(this.watches, before, left);
  }

  protected update({ resources, place }: View, { replaced, keys }: Changes): Changes | undefined {
    if (place) this.#place = place;
    if (!replaced && keys.size === 0) return undefined;
    const known = new Map(this.#rows.map((row) => [mapKey(row), row]));
    this.#rows = Array.from(resources.values(), (resource) => {
      const row = known.get(mapKey(resource));
      return row?.revision === resource.revision && equal(row.value, resource.value) ? row : resource;
    }).sort(compareBy(this.#options.order));
    return { replaced, keys };
  }

  protected derive(view: View): WindowView {
    return { ...freshnessOf(view), ...this.#place, rows: this.#rows, moving: view.state !== 'closed' && this.#moving };
  }

  protected nothing(): Changes {
    return { replaced: false, keys: new Set() };
  }

  protected everything(): Changes {
    return { replaced: false, keys: new Set(this.#rows.map(mapKey)) };
  }

  override close(): void {
    if (this.view.state === 'closed') return;
    this.#next?.leave();
    this.#next = undefined;
    super.close();
    this.#mover?.end();
    removeUnused(this.watches, this.#options, this.#store);
  }
}
