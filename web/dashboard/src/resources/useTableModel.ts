import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import type { ResourceStore } from '../gateway/tide';
import { filtering } from './filter';
import { parseSort } from './order';
import { Sheet, type Look } from './model';

/** The sheet of a store, arranged as the URL says. */
export function useSheet(store: ResourceStore, sort: string | null, filter: string): Sheet {
  const [sheet] = useState(() => new Sheet(store));
  useEffect(() => sheet.follow(), [sheet]);
  useEffect(() => sheet.arrange({ sort: parseSort(sort), filter: filtering(filter) }), [sheet, sort, filter]);
  return sheet;
}

/** What the sheet shows; the component is rendered again with each frame in which that is different. */
export function useLook(sheet: Sheet): Look {
  const subscribe = useCallback((changed: () => void) => sheet.subscribe(changed), [sheet]);
  return useSyncExternalStore(subscribe, () => sheet.look);
}
