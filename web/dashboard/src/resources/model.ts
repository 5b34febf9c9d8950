import type { Changes, Store, View } from '@watchtide/client';
import { type Flush, Pending } from './pending';
import { type Arrangement, Rows } from './rows';
import { inSlices } from './slices';
import type { TableModel, TableStatus } from './table';

/**
 * The model of the table of a watch that is loaded, or of the part of it that matches a filter.
 *
 * The store reports changes as they arrive, up to a thousand times a second. They are
 * gathered and shown once per frame, or step by step while the model is paused. In a
 * tab that is not drawn they are only gathered.
 */
export class LoadedModel implements TableModel {
  readonly rows = new Rows();
  readonly whole = true;
  readonly arrangement = undefined;
  /** The keys of the rows on the screen, which fade when they are deleted. */
  visible: ReadonlySet<string> = new Set();
  /** The number of changes so far. */
  changes = 0;

  readonly #pending = new Pending();
  readonly #listeners = new Set<() => void>();
  #arrangement: Arrangement = { sort: { column: 'key', descending: false }, filter: undefined };
  #snapshot: Flush | undefined; // being sorted, and shown as a whole afterwards
  #arranging: (() => void) | undefined; // cancels the current arrangement
  #revision = '';
  #paused = 0;
  #following = false;
  #frame = 0; // the requested one; 0 for none
  #faded: ReturnType<typeof setTimeout> | undefined;
  #status: TableStatus;

  constructor(readonly store: Store<unknown>) {
    this.#status = this.#current();
  }

  /** The current state. */
  get status(): TableStatus {
    return this.#status;
  }

  get resources(): TableModel['resources'] {
    return this.store.resources;
  }

  look(): void {} // all rows are there

  /** Follows the store until the returned function is called. */
  follow(): () => void {
    this.#following = true;
    let loaded = false;
    const unsubscribe = this.store.subscribe((view, changes) => {
      // The first call is about what is already there.
      this.#take(view, loaded ? changes : { replaced: true, keys: new Set() });
      loaded = true;
    });
    return () => {
      unsubscribe();
      this.#following = false;
      clearTimeout(this.#faded);
      cancelAnimationFrame(this.#frame);
      this.#frame = 0;
      this.#arranging?.();
      this.#arranging = this.#snapshot = undefined;
    };
  }

  /** Calls changed whenever the status changes, until the returned function is called. */
  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  /** Changes the order or the filter. */
  arrange(arrangement: Arrangement): void {
    this.#arrangement = arrangement;
    this.#arrange(this.#snapshot);
    this.#notify();
  }

  /** Pauses the table. */
  pause(): void {
    this.#paused ||= Date.now();
    this.#notify();
  }

  /** Shows the changes that arrived meanwhile, and continues. */
  resume(): void {
    this.#paused = 0;
    this.#wake();
  }

  /** Shows the next step of those that wait. */
  step(): void {
    if (this.#arranging) return;
    this.#show(this.#pending.next());
    this.#notify();
  }

  #take(view: View, changes: Changes): void {
    this.changes += changes.keys.size;
    if (changes.replaced || changes.keys.size > 0 || view.revision !== this.#revision) this.#pending.add(view, changes, this.#paused > 0);
    this.#wake();
  }

  #wake(): void {
    if (!this.#following) return;
    this.#frame ||= requestAnimationFrame((now) => {
      this.#frame = 0;
      this.#draw(now);
    });
  }

  #draw(now: number): void {
    if (!this.#arranging) {
      if (!this.#paused) this.#show(this.#pending.rest());
      this.#removeFaded(now);
    }
    this.#notify();
  }

  #show(flush: Flush | undefined): void {
    if (!flush) return;
    if (flush.all) return this.#arrange(flush);
    this.rows.apply(flush.changes, performance.now(), this.visible);
    this.#revision = flush.revision;
  }

  // While rows fade, there is a timer for the first of them.
  #removeFaded(now: number): void {
    const next = this.rows.removeFaded(now);
    clearTimeout(this.#faded);
    if (next < Infinity) this.#faded = setTimeout(() => this.#wake(), next - now);
  }

  // If it ends at once, the caller notifies the listeners.
  #arrange(snapshot: Flush | undefined): void {
    this.#arranging?.();
    this.#snapshot = snapshot;
    let phase: 'started' | 'late' | 'ended' = 'started';
    const cancel = inSlices(this.rows.arrange(this.#arrangement, snapshot?.all), () => {
      const late = phase === 'late';
      phase = 'ended';
      this.#arranging = this.#snapshot = undefined;
      if (snapshot) this.#revision = snapshot.revision;
      if (late) this.#notify();
      this.#wake(); // to show what arrived meanwhile
    });
    if (phase !== 'started') return;
    phase = 'late';
    this.#arranging = cancel;
  }

  #notify(): void {
    this.#status = this.#current();
    for (const listener of this.#listeners) listener();
  }

  #current(): TableStatus {
    const { total, matching } = this.rows;
    return {
      view: this.store.view,
      state: this.#state(),
      revision: this.#revision,
      total,
      matching,
      paused: this.#paused,
      waiting: this.#paused ? this.#pending.size : 0,
      arranging: this.#arranging !== undefined,
    };
  }

  #state(): View['state'] {
    const { state } = this.store.view;
    if (state !== 'in_sync' || (this.#revision && !this.#snapshot)) return state;
    return this.#revision ? 'stale' : 'priming';
  }
}
