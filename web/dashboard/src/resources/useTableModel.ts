import { useCallback, useEffect, useMemo, useSyncExternalStore } from 'react';
import type { ResourceStore } from '../gateway/tide';
import { type Filter, filterOf } from '../query/holds';
import type { Query } from '../query/query';
import { TableModel, type TableStatus } from './model';
import { parseSort } from './order';

/** Returns the table model of a store, with an order, a query and a prefix of the keys. */
export function useTableModel(store: ResourceStore, sort: string | null, query: Query, prefix: string): TableModel {
  const model = useMemo(() => new TableModel(store), [store]);
  useEffect(() => model.follow(), [model]);
  useEffect(
    () => model.arrange({ sort: parseSort(sort), filter: both(prefixFilter(prefix), filterOf(query)) }),
    [model, sort, query, prefix],
  );
  return model;
}

const prefixFilter = (prefix: string): Filter | undefined =>
  prefix === '' ? undefined : ({ key, key_encoding }) => key_encoding === undefined && key.startsWith(prefix);

const both = (a: Filter | undefined, b: Filter | undefined): Filter | undefined =>
  a && b ? (resource) => a(resource) && b(resource) : (a ?? b);

/** Returns the status of a model; the component is rendered again, at most once per frame, when it changes. */
export function useTableStatus(model: TableModel): TableStatus {
  const subscribe = useCallback((changed: () => void) => model.subscribe(changed), [model]);
  return useSyncExternalStore(subscribe, () => model.status);
}
