import { useLayoutEffect, useRef } from 'react';
import type { TableModel, TableStatus } from './table';
import type { VisibleRows } from './useVisibleRows';

/**
 * Keeps the visible rows in place while others come and go above them; not at the very
 * top, and not if the order is one in which the rows themselves move.
 */
export function useAnchor(model: TableModel, status: TableStatus, { top, shift }: VisibleRows, enabled: boolean): void {
  const anchor = useRef<{ key: string; index: number }>(undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows come and go only with another status
  useLayoutEffect(() => {
    const before = anchor.current;
    const index = before ? model.rows.indexOf(before.key) : -1;
    const moved = before && index >= 0 ? index - before.index : 0;
    if (enabled && top > 0 && moved !== 0) shift(moved);
  }, [status]);
  useLayoutEffect(() => {
    const row = model.rows.at(top);
    anchor.current = row && { key: row.key, index: top };
  });
}
