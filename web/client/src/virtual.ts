import type { Resource } from './resource.js';
import type { LiveWindow, WindowView } from './window.js';

/** What to draw at some places of a list. */
export interface Drawn<V = unknown> {
  /** As many rows as there are places, if so many are loaded; the first one is for the first place. */
  readonly rows: ReadonlyArray<Resource<V>>;
  /** The rows are those of the places. Otherwise they are others, until the window has moved. */
  readonly loaded: boolean;
}

/** Where a window is, and what it has. */
export type Seen<V = unknown> = Pick<WindowView<V>, 'rows' | 'before' | 'total'>;

// A window begins at a multiple of this, so that those of several pages are often the same.
const stepLength = 32;

/**
 * Returns a function for a list that scrolls over all resources of a window's watch. Called with the places that are on the
 * screen, from first to before last, whenever these or the window change, it returns what to draw there, and moves the window
 * with the screen: before it comes to the end of the window, and one move after the other, to where the screen is then.
 *
 * limit is that of the window: some times the number of rows on the screen.
 */
export function virtual<V>(window: LiveWindow<V>, limit: number): (first: number, last: number) => Drawn<V> {
  let asked = -1;
  return (first, last) => {
    const { view } = window;
    const offset = view.moving || view.revision === '' ? undefined : offsetFor(view, first, last, limit);
    if (offset === undefined) asked = -1;
    else if (offset !== asked) window.move({ offset: (asked = offset) });
    return view.revision === '' ? { rows: [], loaded: false } : drawn(view, first, last);
  };
}

/**
 * Returns where a window should begin for some places, so that it has as many on both sides of them; undefined while it has
 * the places, and some to spare.
 */
export function offsetFor({ rows, before, total }: Seen, first: number, last: number, limit: number): number | undefined {
  const spare = Math.max(0, limit - (last - first));
  const more = Math.floor(spare / 4);
  const end = before + rows.length;
  if (before <= Math.max(0, first - more) && end >= Math.min(Math.max(total, end), last + more)) return undefined;
  return Math.max(0, Math.floor((first - spare / 2) / stepLength) * stepLength);
}

/** Returns what to draw at some places. */
export function drawn<V>({ rows, before, total }: Seen<V>, first: number, last: number): Drawn<V> {
  const end = Math.min(last, Math.max(total, before + rows.length)); // the list may end before the screen does
  const count = Math.max(0, end - first);
  const from = Math.max(0, Math.min(first - before, rows.length - count));
  return { rows: rows.slice(from, from + count), loaded: first >= before && end <= before + rows.length };
}
