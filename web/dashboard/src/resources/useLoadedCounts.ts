import { useEffect, useState } from 'react';
import type { Filter } from '../query/holds';
import { column } from './column';
import type { TableModel } from './table';
import { largeCount } from './useSource';

// Nobody reads numbers that change more often, and all rows are visited.
const everyMs = 1_000;

/** How many resources there are, and how many of them have each word of a column. */
export interface WordCounts {
  readonly total: number;
  readonly words: ReadonlyMap<string, number>;
}

/** Counts the words of a column in the rows of a table of which all are loaded, among those for which a filter holds. undefined without a table, and for a large one. */
export function useLoadedCounts(model: TableModel | undefined, id: string, filter: Filter | undefined): WordCounts | undefined {
  const [counts, setCounts] = useState<WordCounts>();
  useEffect(() => {
    if (!model) return setCounts(undefined);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const count = () => {
      timer = undefined;
      setCounts(model.resources.size > largeCount ? undefined : countsOf(model, id, filter));
    };
    count();
    const unsubscribe = model.subscribe(() => {
      timer ??= setTimeout(count, everyMs);
    });
    return () => {
      unsubscribe();
      clearTimeout(timer);
    };
  }, [model, id, filter]);
  return model && counts;
}

function countsOf({ resources }: TableModel, id: string, filter: Filter | undefined): WordCounts {
  const { get } = column(id);
  const words = new Map<string, number>();
  let total = 0;
  for (const resource of resources.values()) {
    if (filter && !filter(resource)) continue;
    total++;
    const word = get(resource);
    if (typeof word === 'string' && word !== '') words.set(word, (words.get(word) ?? 0) + 1);
  }
  return { total, words };
}
