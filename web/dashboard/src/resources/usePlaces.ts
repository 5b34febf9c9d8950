import { useEffect, useState } from 'react';
import { columnPath } from './column';
import { type Place, placeCount, readPlaces } from './places';
import { isSecret } from './secret';
import type { TableModel, TableStatus, WindowArrangement } from './table';

// The values are asked for again while the table changes.
const everyMs = 30_000;

// With fewer rows, a scroll bar is enough.
const minRows = 10 * placeCount;

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
  const wanted = !arranging && matching >= minRows && !isSecret(columnPath(arrangement?.sort.column ?? ''));
  useEffect(() => {
    if (!arrangement || !wanted) return;
    const ended = new AbortController();
    let changes = -1;
    const update = async () => {
      if (document.hidden || model.status.state !== 'in_sync' || changes === model.changes) return;
      changes = model.changes;
      try {
        setRead({ arrangement, places: await readPlaces(watch, arrangement, model.rows.matching, ended.signal) });
      } catch {
        changes = -1; // what was read before stays, and the next attempt has its time
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
