import type { Subscribers } from '@watchtide/protocol';
import { useEffect, useState } from 'react';
import { poll } from '../gateway/answer';
import { everyMs, pathOf, type Selection } from '../gateway/subscribers';
import { Pages, type Wanted } from './pages';

/** Where the pages begin, and what is fetched of them. */
interface Source {
  readonly selection: Selection;
  /** The first page, which is fetched with the rest of the answer. */
  readonly first: Subscribers;
  readonly limit: number;
}

/** What is on the screen. */
export interface Shown {
  /** The first row that is not loaded, or else the one in the middle. */
  readonly row: number;
  readonly atTop: boolean;
}

const none = new Pages([]);

/**
 * Returns the pages of a list, fetched as far as a row that is on the screen. Its page is refreshed while it stays there.
 * At the top, the list begins again, so that later pages do not stay as they were.
 */
export function usePages({ selection, first, limit }: Source, { row, atTop }: Shown): Pages {
  const [pages, setPages] = useState(none);
  useEffect(() => {
    setPages((before) => {
      const start = before === none ? new Pages([{ after: '', limit, rows: [], next: undefined }]) : before;
      return start.with({ after: '', limit }, first);
    });
  }, [first, limit]);
  const wanted = pages.wanted(row);
  const path = wanted?.after ? pathOf({ ...selection, group: '', after: wanted.after }, wanted.limit) : '';
  useEffect(() => {
    if (atTop) setPages((before) => before.first());
  }, [atTop]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path says what is wanted
  useEffect(() => {
    if (!path) return;
    const asked = wanted as Wanted;
    return poll<Subscribers>(path, everyMs, ({ data }) => data && setPages((before) => before.with(asked, data)));
  }, [path]);
  return pages;
}
