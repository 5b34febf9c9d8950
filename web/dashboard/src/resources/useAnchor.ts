import { useLayoutEffect, useRef } from 'react';
import type { Look, Sheet } from './model';
import type { Window } from './useWindow';

/**
 * Keeps the rows that are read where they are while others come and go above them.
 * Not where the order is one in which the rows themselves move, nor at the very top.
 */
export function useAnchor(sheet: Sheet, look: Look, { top, shift }: Window, enabled: boolean): void {
  const anchor = useRef<{ key: string; index: number }>(undefined);
  useLayoutEffect(() => {
    const before = anchor.current;
    const index = before ? sheet.rows.indexOf(before.key) : -1;
    const moved = before && index >= 0 ? index - before.index : 0;
    if (enabled && top > 0 && moved !== 0) shift(moved);
  }, [look]);
  useLayoutEffect(() => {
    const row = sheet.rows.shown[top];
    anchor.current = row && { key: row.key, index: top };
  });
}
