import { useEffect, useState } from 'react';
import { useCramped } from '../app/narrow';
import { columnPath } from './column';
import { mostPlaces, type Place, readPlaces } from './places';
import { isSecret } from './secret';
import type { TableModel, TableStatus, WindowArrangement } from './table';

// The values are asked for again when the number of rows has changed, and rarely when only values have.
const everyMs = 30_000;
const valuesMs = 300_000;

// With fewer rows, a scroll bar is enough.
const minRows = 16 * mostPlaces;

interface Read {
  readonly arrangement: WindowArrangement;
  readonly places: readonly Place[];
}

/**
 * Returns values of the column by which a table on a window is sorted, at places from its first to its last row; undefined
 * if all rows are loaded, if there are few, or if the gateway has not answered.
 */
export function usePlaces(watch: string, model: TableModel, { matching, arranging }: TableStatus): readonly Place[] | undefined {
  const { arrangement } = model;
  const [read, setRead] = useState<Read>();
  const cramped = useCramped(); // as in PlacesBar.css: there is no bar
  const wanted = !cramped && !arranging && matching >= minRows && !isSecret(columnPath(arrangement?.sort.column ?? ''));
  useEffect(() => {
    if (!arrangement || !wanted) return;
    const ended = new AbortController();
    let known: { changes: number; total: number; at: number } | undefined;
    const update = async () => {
      if (document.hidden || model.status.state !== 'in_sync') return;
      const { changes, rows } = model;
      const total = rows.matching;
      const now = performance.now();
      if (known && (known.changes === changes || (known.total === total && now - known.at < valuesMs))) return;
      known = { changes, total, at: now };
      try {
        setRead({ arrangement, places: await readPlaces(watch, arrangement, total, ended.signal) });
      } catch {
        known = undefined; // what was read before stays, and the next attempt has its time
      }
    };
    void update();
    const timer = setInterval(update, everyMs);
    return () => {
      ended.abort();
      clearInterval(timer);
    };
  }, [watch, model, arrangement, wanted]);
  return wanted && arrangement && read?.arrangement === arrangement && read.places.length > 1 ? read.places : undefined;
}
