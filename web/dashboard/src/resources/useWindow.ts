import { useEffect, useState, type RefObject } from 'react';
import { flushSync } from 'react-dom';

/** Which rows are on the screen, with some more above and below: from first to before last. */
export interface Window {
  readonly first: number;
  readonly last: number;
}

export const rowHeight = 36;
const more = 6;

/** The rows that an element which scrolls them shows. All rows have the same height, below a head of that height. */
export function useWindow(scroller: RefObject<HTMLElement | null>, count: number): Window {
  const [{ top, height }, setPlace] = useState({ top: 0, height: 0 });
  useEffect(() => {
    const element = scroller.current!;
    const measure = () => {
      const top = Math.floor(element.scrollTop / rowHeight);
      const height = Math.ceil(element.clientHeight / rowHeight);
      setPlace((before) => (before.top === top && before.height === height ? before : { top, height }));
    };
    // At once: a frame later there would be a gap where the rows have gone.
    const scrolled = () => flushSync(measure);
    const size = new ResizeObserver(measure);
    size.observe(element);
    element.addEventListener('scroll', scrolled, { passive: true });
    return () => {
      size.disconnect();
      element.removeEventListener('scroll', scrolled);
    };
  }, [scroller]);
  const first = Math.max(0, Math.min(top, count - height) - more);
  return { first, last: Math.min(count, first + height + 2 * more + 1) };
}

/** Scrolls as little as is needed for a row to be seen whole, below the head. */
export function reveal(scroller: HTMLElement, index: number): void {
  const top = index * rowHeight;
  const bottom = top + 2 * rowHeight - scroller.clientHeight;
  if (scroller.scrollTop > top) scroller.scrollTop = top;
  else if (scroller.scrollTop < bottom) scroller.scrollTop = bottom;
}
