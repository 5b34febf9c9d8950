export const rowHeight = 36;

// A browser cannot make an element of any height: Firefox ends at 17,800,000 px.
const tallest = 15_000_000;

/**
 * How many rows fit into an element that scrolls. All rows have the same height. If
 * they are together higher than an element can be, a way on the scroll bar is a
 * longer way among the rows.
 */
export interface Extent {
  /** Of all rows together, in px, as it is scrolled through. */
  readonly height: number;
  /** How far among the rows it is for each px that is scrolled. */
  readonly ratio: number;
}

/** For so many rows, in an element that shows so many px of them at a time. */
export function extentOf(rows: number, shown: number): Extent {
  const height = rows * rowHeight;
  if (height <= tallest) return { height, ratio: 1 };
  return { height: tallest, ratio: (height - shown) / (tallest - shown) };
}
