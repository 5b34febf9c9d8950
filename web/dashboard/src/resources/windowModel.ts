import { offsetFor } from '@watchtide/client/virtual';
import type { LiveWindow, Move, WindowView } from '@watchtide/client/window';
import { columnPath } from './column';
import type { Sort } from './order';
import type { TableModel, TableStatus, WindowArrangement } from './table';
import { WindowRows } from './windowRows';

/** How many rows are loaded: some screens of them. */
export const windowLimit = 256;

/** Returns whether the gateway can sort by a column: by a field, and by keys. */
export const sortsByGateway = ({ column }: Sort): boolean => column === 'key' || columnPath(column).length > 0;

/**
 * Returns the order of the gateway for a column. Equal resources come in the order of their keys, so that they are sorted
 * by key where no resource has a field of this name.
 */
export function orderOf({ column, descending }: Sort): string {
  if (column === 'key') return '"\\u0000"';
  const path = columnPath(column).map((name) => JSON.stringify(name));
  return `${descending ? '-' : ''}${path.join('.')}`;
}

/** Returns where a table begins: with the first rows of an arrangement. */
export const beginningOf = ({ sort, filter, prefix }: WindowArrangement): Required<Pick<Move, 'order' | 'limit'>> & Move => ({
  order: orderOf(sort),
  limit: windowLimit,
  filter,
  prefix,
  offset: 0,
});

/**
 * The model of the table of a watch that is too large to be loaded: the gateway sorts and filters, and the page has the rows
 * around those on the screen. The window moves with the screen. Until all of its rows are there, the old ones are shown, also
 * where they do not belong.
 */
export class WindowModel implements TableModel {
  readonly rows = new WindowRows();
  readonly whole = false;
  visible: ReadonlySet<string> = new Set();
  changes = 0;

  readonly #listeners = new Set<() => void>();
  #arrangement: WindowArrangement;
  #received: WindowView; // the newest
  #view: WindowView; // that is shown
  #asked = 0; // where the window begins, or is to begin
  #moving = false; // to a place, or
  #arranging = false; // to another arrangement
  #screen = { first: 0, last: 0 };
  #paused = 0;
  #waiting = 0;
  #frame = 0;
  #status: TableStatus;

  constructor(
    private readonly live: LiveWindow,
    arrangement: WindowArrangement,
  ) {
    this.#arrangement = arrangement;
    this.#view = this.#received = live.view;
    this.#show();
    this.#status = this.#current();
  }

  get arrangement(): WindowArrangement {
    return this.#arrangement;
  }

  get status(): TableStatus {
    return this.#status;
  }

  get resources(): TableModel['resources'] {
    return this.rows.resources;
  }

  follow(): () => void {
    this.live.move({ ...beginningOf(this.#arrangement), offset: this.#asked });
    const unsubscribe = this.live.subscribe((view) => this.#take(view));
    return () => {
      unsubscribe();
      cancelAnimationFrame(this.#frame);
      this.#frame = 0;
    };
  }

  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }

  /** Changes the order or the filter. The first rows of it are shown, once they are there. */
  arrange(arrangement: WindowArrangement): void {
    const before = this.#arrangement;
    if (sameArrangement(before, arrangement)) return;
    if (before.filter !== arrangement.filter || before.prefix !== arrangement.prefix) this.rows.forget();
    this.#arrangement = arrangement;
    this.#moving = this.#arranging = true;
    this.#asked = 0;
    this.live.move(beginningOf(arrangement));
    if (!this.live.view.moving) this.#show(); // it is there already, in the other direction
    this.#notify();
  }

  look(first: number, last: number): void {
    this.#screen = { first, last };
    this.#move();
  }

  pause(): void {
    this.#paused ||= Date.now();
    this.#notify();
  }

  resume(): void {
    this.#paused = 0;
    this.#draw();
  }

  step(): void {
    this.#show();
    this.#notify();
  }

  #take(view: WindowView): void {
    const changed = changesOf(this.#received, view);
    this.#received = view;
    this.changes += changed;
    if (this.#paused) this.#waiting += changed;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  // What has moved is shown also in a table that is paused: the user looks elsewhere.
  #draw(): void {
    if (!this.#paused || (this.#moving && !this.live.view.moving)) this.#show();
    this.#move();
    this.#notify();
  }

  #show(): void {
    this.#view = this.live.view;
    this.#waiting = 0;
    this.#moving &&= this.#view.moving;
    this.#arranging &&= this.#view.moving;
    this.rows.show(this.#view, this.#reversed);
  }

  // Keys are sorted in one direction only: in the other one, the rows are counted from the end.
  get #reversed(): boolean {
    const { column, descending } = this.#arrangement.sort;
    return column === 'key' && descending;
  }

  // One move follows the other: each has the time that it needs, and the screen may be elsewhere by then.
  #move(): void {
    const { moving, revision } = this.live.view;
    const { first, last } = this.#screen;
    const { length } = this.rows;
    const [from, to] = this.#reversed ? [length - last, length - first] : [first, last];
    const offset = offsetFor(this.#view, from, to, windowLimit);
    if (moving || revision === '' || offset === undefined || offset === this.#asked) return;
    this.#asked = offset;
    this.#moving = true;
    this.live.move({ offset });
  }

  #notify(): void {
    this.#status = this.#current();
    for (const listener of this.#listeners) listener();
  }

  #current(): TableStatus {
    const { state, since, reason, error } = this.live.view;
    const { total, matching } = this.rows;
    return {
      view: { state, since, reason, ...(error && { error }) },
      state: state === 'in_sync' && this.#arranging ? 'stale' : state,
      revision: this.#view.revision,
      total,
      matching,
      paused: this.#paused,
      waiting: this.#waiting,
      arranging: this.#arranging,
    };
  }
}

const sameArrangement = (a: WindowArrangement, b: WindowArrangement) =>
  orderOf(a.sort) === orderOf(b.sort) && a.sort.descending === b.sort.descending && a.filter === b.filter && a.prefix === b.prefix;

// The rows of a window that has moved are no changes.
function changesOf(before: WindowView, now: WindowView): number {
  if (now.rows === before.rows || before.moving || before.revision === '') return 0;
  const known = new Set(before.rows);
  return Math.max(1, now.rows.filter((row) => !known.has(row)).length);
}
