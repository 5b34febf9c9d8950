import type { Resource } from '@watchtide/client';
import { useCallback, useEffect, useMemo, useSyncExternalStore } from 'react';
import { type Filter, filterOf } from '../query/holds';
import type { Query } from '../query/query';
import { LoadedModel } from './model';
import type { TableModel, TableStatus } from './table';
import type { Source } from './useSource';
import { WindowModel } from './windowModel';

/** Returns the table model of a source, with a prefix of the keys. */
export function useTableModel({ store, window, query, cel, sort: { column, descending } }: Source, prefix: string): TableModel {
  const sort = useMemo(() => ({ column, descending }), [column, descending]);
  const windowed = useMemo(() => ({ sort, filter: cel, prefix }), [sort, cel, prefix]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a model is arranged again when it is there
  const model = useMemo(() => (window ? new WindowModel(window, windowed) : new LoadedModel(store!)), [store, window]);
  useEffect(() => model.follow(), [model]);
  useEffect(() => {
    if (model instanceof WindowModel) model.arrange(windowed);
    else model.arrange({ sort, filter: filterIn(prefix, query) });
  }, [model, windowed, sort, query, prefix]);
  return model;
}

/** Returns a filter for the resources whose keys begin with a prefix, and of which a query holds; undefined for all. */
export function filterIn(prefix: string, query: Query): Filter | undefined {
  const filter = filterOf(query);
  if (prefix === '') return filter;
  return (resource) => resource.key_encoding === undefined && resource.key.startsWith(prefix) && (!filter || filter(resource));
}

function useModel<T>(model: TableModel, read: () => T): T {
  return useSyncExternalStore(
    useCallback((changed) => model.subscribe(changed), [model]),
    read,
  );
}

/** Returns the status of a model; the component is rendered again, at most once per frame, when it changes. */
export function useTableStatus(model: TableModel): TableStatus {
  return useModel(model, () => model.status);
}

type Primitive = string | number | boolean;

/** Returns what is selected of the status of a model; the component is rendered again, at most once per frame, when that changes. */
export function useStatus<T extends Primitive>(model: TableModel, select: (status: TableStatus) => T): T {
  return useModel(model, () => select(model.status));
}

/** Returns the resource of a row; the component is rendered again, at most once per frame, when it changes. undefined if there is none. */
export function useRowResource(model: TableModel, key: string): Resource | undefined {
  return useModel(model, () => model.rows.get(key)?.resource);
}

const readableMs = 250;

/** Is useStatus for a text that nobody can read at sixty changes a second: the component is rendered at most four times a second. */
export function useThrottledStatus<T extends Primitive>(model: TableModel, select: (status: TableStatus) => T): T {
  return useSyncExternalStore(
    useCallback((changed) => subscribeReadably(model, changed), [model]),
    () => select(model.status),
  );
}

function subscribeReadably(model: TableModel, changed: () => void): () => void {
  let last = -Infinity;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tell = () => {
    timer = undefined;
    last = performance.now();
    changed();
  };
  const unsubscribe = model.subscribe(() => {
    timer ??= setTimeout(tell, Math.max(0, last + readableMs - performance.now()));
  });
  return () => {
    unsubscribe();
    clearTimeout(timer);
  };
}
