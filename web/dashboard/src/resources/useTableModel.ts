import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import type { ResourceStore } from '../gateway/tide';
import { parseFilter } from './filter';
import { TableModel, type TableStatus } from './model';
import { parseSort } from './order';

/** Returns the table model of a store, with the order and filter in the URL. */
export function useTableModel(store: ResourceStore, sort: string | null, filter: string): TableModel {
  const [model] = useState(() => new TableModel(store));
  useEffect(() => model.follow(), [model]);
  useEffect(() => model.arrange({ sort: parseSort(sort), filter: parseFilter(filter) }), [model, sort, filter]);
  return model;
}

/** Returns the status of a model; the component is rendered again, at most once per frame, when it changes. */
export function useTableStatus(model: TableModel): TableStatus {
  const subscribe = useCallback((changed: () => void) => model.subscribe(changed), [model]);
  return useSyncExternalStore(subscribe, () => model.status);
}
