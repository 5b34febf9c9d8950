/** The height of a row, in px. */
export const rowHeights = { comfortable: 36, compact: 28 };

// Browsers limit the height of an element: Firefox to 17,800,000 px.
const maxHeight = 15_000_000;

/**
 * Maps rows of equal height to an element that scrolls. If the rows are taller than an
 * element can be, each px that is scrolled stands for more than one px of the rows.
 */
export interface Extent {
  /** The height of the scrolled element, in px. */
  readonly height: number;
  /** The px of the rows for each px that is scrolled. */
  readonly ratio: number;
}

/** Returns the extent of this many rows in an element that shows this many px of them. */
export function extentOf(rows: number, shown: number, rowHeight: number): Extent {
  const height = rows * rowHeight;
  if (height <= maxHeight) return { height, ratio: 1 };
  return { height: maxHeight, ratio: (height - shown) / (maxHeight - shown) };
}
