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
  #ended = false;
  #closed = false;
  #view: D | undefined;
  #of: View<V> | undefined; // what it is made from

  /** Begins to follow, when the subclass is complete, or goes on after a pause. */
  protected follow(store: Readable<V>): void {
    let first = true; // that call does not say what has changed during a pause
    this.#unsubscribe = store.subscribe((view, changes) => {
      if (!first) this.#take(view, changes);
      else if (view !== this.#of) this.#take(view, { replaced: true, keys: new Set() });
      first = false;
    });
    if (this.#ended) this.#unsubscribe();
  }

  /** Follows no more until the next follow. */
  protected pause(): void {
    this.#unsubscribe?.();
  }

  #take(view: View<V>, changes: Changes): void {
    this.#of = view;
    const changed = this.update(view, changes);
    const before = this.#view;
    this.#view = this.derive(view, !before || changed !== undefined);
    if (before && before !== this.#view) this.#listeners.call(this.#view, changed ?? this.nothing());
  }

  /** Derives the view again, for a reason other than a change of the store. */
  protected again(): void {
    if (this.#closed) return;
    this.#view = this.derive(this.#of!, false);
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

  /** Reports whether it is made from the view that a store has now. */
  protected isOf({ view }: Readable<V>): boolean {
    return view === this.#of;
  }

  /** Calls run at once, with all as changed, and after each change, until the returned function is called. Throws if it was closed: nothing would call run. */
  subscribe(run: (view: D, changes: C) => void): () => void {
    if (this.#closed) throw new Error('it was closed: make another one for each use');
    return this.#listeners.add(run, this.view, this.everything());
  }

  /** It changes no more, for a reason that its view has. */
  protected end(): void {
    this.#ended = true;
    this.pause();
  }

  /** Ends it: its view is closed, and changes no more. */
  close(): void {
    this.end();
    this.#closed = true;
    if (this.view.state === 'closed') return;
    this.#view = { ...this.view, state: 'closed', since: Date.now(), reason: 'it was closed by the page' };
    this.#listeners.call(this.#view, this.nothing());
  }
}

export const freshnessOf = ({ state, since, reason, error, revision }: View): DerivedView => ({
  state,
  since,
  reason,
  ...(error && { error }),
  revision,
});
