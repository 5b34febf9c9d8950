import type { Changes, Store, View } from '@watchtide/client';
import { Pending, type Flush } from './pending';
import { Rows, type Arrangement } from './rows';
import { inSlices } from './slices';

/** What a table shows beside its rows, at one moment. A new object whenever it or a row is different. */
export interface Look {
  /** Of the store. A component takes it from here, since all that it is rendered from must be of one moment. */
  readonly view: View;
  /** That of the rows: they are in sync when they are there to be read. */
  readonly state: View['state'];
  /** Of what is shown; empty before the first snapshot. */
  readonly revision: string;
  /** How many resources there are, and how many pass the filter. */
  readonly total: number;
  readonly matching: number;
  /** Since when what is shown stands still, in ms as of Date.now; 0 while it does not. */
  readonly paused: number;
  /** How many changes wait while it does. */
  readonly waiting: number;
  /** Rows are being sorted or filtered; those before are shown. */
  readonly arranging: boolean;
}

/**
 * What the table of a watch shows of its store.
 *
 * The store tells of changes as they arrive, up to a thousand times a second. They
 * are gathered, and shown once in each frame that the browser draws, or step by
 * step while the sheet is paused. A tab that is not drawn only gathers.
 */
export class Sheet {
  readonly rows = new Rows();
  /** The keys of the rows that are on the screen: those that are deleted fade. */
  visible: ReadonlySet<string> = new Set();
  /** How many changes came in all. */
  changes = 0;

  readonly #pending = new Pending();
  readonly #listeners = new Set<() => void>();
  #arrangement: Arrangement = { sort: { column: 'key', descending: false }, filter: undefined };
  #snapshot: Flush | undefined; // being arranged, to be shown at once when it is
  #arranging: (() => void) | undefined; // gives it up
  #revision = '';
  #paused = 0;
  #following = false;
  #frame = 0; // asked for; 0 for none
  #faded: ReturnType<typeof setTimeout> | undefined;
  #look: Look;

  constructor(readonly store: Store<unknown>) {
    this.#look = this.#current();
  }

  /** What is shown now. */
  get look(): Look {
    return this.#look;
  }

  /** Follows the store until the function that it returns is called. */
  follow(): () => void {
    this.#following = true;
    this.#pending.add(this.store.view, { replaced: true, keys: new Set() }, false);
    const unsubscribe = this.store.subscribe((view, changes) => this.#take(view, changes));
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

  /** Calls changed whenever there is another look, until the function that it returns is called. */
  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  /** Shows the rows in another order, or others of them. */
  arrange(arrangement: Arrangement): void {
    this.#arrangement = arrangement;
    this.#arrange(this.#snapshot);
    this.#tell();
  }

  /** Lets what is shown stand still. */
  pause(): void {
    this.#paused ||= Date.now();
    this.#tell();
  }

  /** Shows what came meanwhile, and from now on what comes. */
  resume(): void {
    this.#paused = 0;
    this.#wake();
  }

  /** Shows the next change of those that wait, with those that are one with it. */
  step(): void {
    if (this.#arranging) return;
    this.#show(this.#pending.next());
    this.#tell();
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
      this.#bury(now);
    }
    this.#tell();
  }

  #show(flush: Flush | undefined): void {
    if (!flush) return;
    if (flush.all) return this.#arrange(flush);
    this.rows.apply(flush.changes, performance.now(), this.visible);
    this.#revision = flush.revision;
  }

  // While something fades, there is a timer for the first that has faded.
  #bury(now: number): void {
    const next = this.rows.bury(now);
    clearTimeout(this.#faded);
    if (next < Infinity) this.#faded = setTimeout(() => this.#wake(), next - now);
  }

  // What is done within a frame, the caller tells of.
  #arrange(snapshot: Flush | undefined): void {
    this.#arranging?.();
    this.#snapshot = snapshot;
    let state: 'begun' | 'late' | 'ended' = 'begun';
    const giveUp = inSlices(this.rows.arrange(this.#arrangement, snapshot?.all), () => {
      const late = state === 'late';
      state = 'ended';
      this.#arranging = this.#snapshot = undefined;
      if (snapshot) this.#revision = snapshot.revision;
      if (late) this.#tell();
      this.#wake(); // for what came meanwhile
    });
    if (state !== 'begun') return;
    state = 'late';
    this.#arranging = giveUp;
  }

  #tell(): void {
    this.#look = this.#current();
    for (const listener of this.#listeners) listener();
  }

  #current(): Look {
    const { total, matching } = this.rows;
    return {
      view: this.store.view, state: this.#state(), revision: this.#revision, total, matching,
      paused: this.#paused, waiting: this.#paused ? this.#pending.size : 0, arranging: this.#arranging !== undefined,
    };
  }

  #state(): View['state'] {
    const { state } = this.store.view;
    if (state !== 'in_sync' || this.#revision && !this.#snapshot) return state;
    return this.#revision ? 'stale' : 'priming';
  }
}
