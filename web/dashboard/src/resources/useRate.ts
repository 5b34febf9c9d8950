import { useRef } from 'react';
import { useNow } from '../app/clock';
import type { TableModel } from './table';

const overMs = 5000;

/** Returns the changes per second over the last five seconds. */
export function useRate(model: TableModel): number {
  const now = useNow();
  const samples = useRef<Array<{ at: number; changes: number }>>([]);
  if (samples.current.at(-1)?.at !== now) {
    samples.current = [...samples.current.filter(({ at }) => now - at <= overMs), { at: now, changes: model.changes }];
  }
  const first = samples.current[0]!;
  const last = samples.current.at(-1)!;
  return last.at > first.at ? ((last.changes - first.changes) * 1000) / (last.at - first.at) : 0;
}
