import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { useSettings } from '../app/settings';
import { extentOf, rowHeights } from './extent';

/** The rows on the screen, and their places. */
export interface VisibleRows {
  /** The first row on the screen; some before it are rendered as well. */
  readonly top: number;
  /** The number of rows that are completely visible. */
  readonly whole: number;
  /** The rendered rows: from first to before last. */
  readonly first: number;
  readonly last: number;
  /** The height of one row, in px. */
  readonly rowHeight: number;
  /** The height of all rows. */
  readonly height: number;
  /** Returns the place of a row, in px from the first one. */
  y(index: number): number;
  /** Scrolls as little as needed to make a row completely visible. */
  reveal(index: number): void;
  /** Scrolls by this many rows, before anything is painted. */
  shift(rows: number): void;
  /** Scrolls so that a row is the first one on the screen, or the last ones are on it. */
  jump(index: number): void;
  /** Scrolls to the first row. */
  toTop(): void;
}

const overscan = 6;

/** Returns the visible rows of an element that scrolls, below a header at most as tall as a row. */
export function useVisibleRows(scroller: RefObject<HTMLElement | null>, count: number, heights = rowHeights): VisibleRows {
  const [{ scrolled, shown }, setPlace] = useState({ scrolled: 0, shown: 0 });
  const rowHeight = heights[useSettings().density];
  const { height, ratio } = extentOf(count, shown, rowHeight);
  const step = useRef(1);
  step.current = ratio === 1 ? rowHeight : 1; // in px: smaller steps cause no render

  const measure = useCallback(() => {
    const element = scroller.current;
    if (!element) return; // removed, and observed until its effects end
    const scrolled = element.scrollTop - (element.scrollTop % step.current);
    const shown = Math.max(0, element.clientHeight - rowHeight);
    setPlace((before) => (before.scrolled === scrolled && before.shown === shown ? before : { scrolled, shown }));
  }, [scroller, rowHeight]);
  useEffect(() => {
    const element = scroller.current!;
    // At once: a frame later there would be a gap.
    const onScroll = () => flushSync(measure);
    const size = new ResizeObserver(measure);
    size.observe(element);
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      size.disconnect();
      element.removeEventListener('scroll', onScroll);
    };
  }, [scroller, measure]);

  const toTop = useCallback(() => {
    scroller.current!.scrollTop = 0;
    measure();
  }, [scroller, measure]);

  const place = Math.min(scrolled, Math.max(0, height - shown)); // there may be fewer rows than at the last scroll
  const top = Math.floor((place * ratio) / rowHeight);
  const first = Math.max(0, top - overscan);
  return {
    top,
    rowHeight,
    first,
    whole: Math.floor(shown / rowHeight),
    last: Math.min(count, top + Math.ceil(shown / rowHeight) + overscan + 1),
    height,
    y: (index) => index * rowHeight - Math.round(place * (ratio - 1)),
    reveal(index) {
      const element = scroller.current!;
      const shown = Math.max(0, element.clientHeight - rowHeight); // also before it was measured
      const lowest = (index * rowHeight) / ratio;
      const highest = ((index + 1) * rowHeight - shown) / ratio;
      if (element.scrollTop > lowest) element.scrollTop = lowest;
      else if (element.scrollTop < highest) element.scrollTop = highest;
    },
    jump(index) {
      scroller.current!.scrollTop = (index * rowHeight) / ratio;
      measure();
    },
    shift(rows) {
      scroller.current!.scrollTop += (rows * rowHeight) / ratio;
      measure();
    },
    toTop,
  };
}
