import { useEffect, useState } from 'react';
import { type Range, rangeOf } from './heat';
import type { TableModel } from './table';
import type { ShownColumn } from './useColumns';

const everyMs = 5000;
const sampleSize = 2000;

/** The ranges of numeric columns, by their names. */
export type Ranges = ReadonlyMap<string, Range>;

const none: Ranges = new Map();

/** Returns the ranges of the numeric columns in a sample, which is taken again while the table changes. */
export function useRanges(model: TableModel, columns: readonly ShownColumn[]): Ranges {
  const [ranges, setRanges] = useState(none);
  useEffect(() => {
    const numeric = columns.filter(({ id, numeric }) => numeric && id !== 'revision');
    let changes = -1;
    const update = () => {
      if (changes === model.changes || model.rows.total === 0) return;
      changes = model.changes;
      const sample = model.rows.sample(sampleSize);
      setRanges((before) => kept(before, new Map(numeric.flatMap(({ id, get }) => entry(id, rangeOf(get, sample))))));
    };
    update();
    const unsubscribe = model.subscribe(() => changes < 0 && update());
    const timer = setInterval(update, everyMs);
    return () => {
      unsubscribe();
      clearInterval(timer);
    };
  }, [model, columns]);
  return ranges;
}

const entry = (id: string, range: Range | undefined): Array<[string, Range]> => (range ? [[id, range]] : []);

// The bars of all rows are drawn again only if a range has changed by more than a percent.
function kept(before: Ranges, now: Ranges): Ranges {
  const same = before.size === now.size && [...now].every(([id, range]) => isNear(before.get(id), range));
  return same ? before : now;
}

function isNear(a: Range | undefined, b: Range): boolean {
  const tolerance = (b.high - b.low) / 100;
  return a !== undefined && Math.abs(a.low - b.low) <= tolerance && Math.abs(a.high - b.high) <= tolerance;
}
