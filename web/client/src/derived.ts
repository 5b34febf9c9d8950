import { Listeners, type Readable } from './listeners.js';
import type { Changes } from './replica.js';
import type { Freshness, View } from './view.js';

/** The state of what is made from a store: as fresh as that is. */
export interface DerivedView extends Freshness {
  /** The revision of the store. */
  readonly revision: string;
}

/** Follows a store, and keeps something that is made from it, until it is closed. */
export abstract class Derived<V, D extends DerivedView, C> {
  readonly #listeners = new Listeners<D, C>();
  #unsubscribe: (() => void) | undefined;
  #view: D | undefined;
  #of!: View<V>; // what it is made from

  /** Begins to follow; called when the subclass is complete. */
  protected follow(store: Readable<V>): void {
    this.#unsubscribe = store.subscribe((view, changes) => {
      this.#of = view;
      const changed = this.update(view, this.#view ? changes : { replaced: true, keys: new Set() });
      const before = this.#view;
      this.#view = this.derive(view, !before || changed !== undefined);
      if (before && before !== this.#view) this.#listeners.call(this.#view, changed ?? this.nothing());
    });
  }

  /** Derives the view again, for a reason other than a change of the store. */
  protected again(): void {
    this.#view = this.derive(this.#of, false);
    this.#listeners.call(this.#view, this.nothing());
  }

  /** Takes the changes of the store, and returns those of what is made from it; undefined if there are none. */
  protected abstract update(view: View<V>, changes: Changes): C | undefined;

  /** Returns the view for a view of the store. changed: update has returned something. */
  protected abstract derive(view: View<V>, changed: boolean): D;

  protected abstract nothing(): C;

  /** The changes for a listener that knows nothing. */
  protected abstract everything(): C;

  /** The current view: the same object until something in it changes. */
  get view(): D {
    return this.#view!;
  }

  /** Calls run at once, with all as changed, and after each change, until the returned function is called. */
  subscribe(run: (view: D, changes: C) => void): () => void {
    return this.#listeners.add(run, this.view, this.everything());
  }

  /** Ends it: it changes no more. */
  close(): void {
    this.#unsubscribe?.();
  }
}

export const freshnessOf = ({ state, since, reason, error, revision }: View): DerivedView => ({
  state,
  since,
  reason,
  ...(error && { error }),
  revision,
});
