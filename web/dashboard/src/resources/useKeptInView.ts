import { useLayoutEffect, useRef } from 'react';
import type { VisibleRows } from './useVisibleRows';

/** Keeps a row in view, if it was, when the table becomes shorter, as it does when tiles appear above it. */
export function useKeptInView(index: number, { top, whole, reveal }: VisibleRows): void {
  const wholeBefore = useRef(whole);
  useLayoutEffect(() => {
    const before = wholeBefore.current;
    wholeBefore.current = whole;
    if (whole < before && index >= top && index <= top + before) reveal(index);
  });
}
