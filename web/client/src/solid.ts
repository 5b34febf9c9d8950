import { type Accessor, batch, createMemo, createSignal, onCleanup } from 'solid-js';
import { createStore, reconcile } from 'solid-js/store';
import type { CountsView, LiveCounts } from './counts.js';
import type { Live, Readable } from './listeners.js';
import { ObservedQuery, type QueryOptions, type QueryView } from './live_query.js';
import { onKey } from './on_key.js';
import type { Resource } from './resource.js';
import type { View } from './view.js';
import type { LiveWindow, WindowView } from './window.js';

export type { Readable } from './listeners.js';

/** Returns the view of a watch as a signal, until its owner ends. */
export function useWatch<V>(store: Readable<V>): Accessor<View<V>> {
  const [view, setView] = createSignal(store.view);
  onCleanup(store.subscribe((next) => void setView(() => next)));
  return view;
}

/**
 * Returns the resource of one key, or undefined if there is none, as a signal, until its owner
 * ends. A change runs only what reads its key. The store and the key may be signals. The
 * resource is that of the store, and not a copy.
 */
export function useResource<V>(store: MaybeAccessor<Readable<V>>, key: MaybeAccessor<string>): Accessor<Resource<V> | undefined> {
  const followed = createMemo(() => {
    const [resource, setResource] = createSignal<Resource<V>>();
    onCleanup(onKey(access(store), access(key), (next) => void setResource(() => next)));
    return resource;
  });
  return () => followed()();
}

/**
 * Returns the view of a query as a signal, until its owner ends: its `rows` are the resources that `filter` selects, in the order
 * of `compare`. A change costs time for the changed keys. The store and the options may be signals: for other ones everything is
 * filtered and sorted again.
 */
export function useQuery<V>(store: MaybeAccessor<Readable<V>>, options: MaybeAccessor<QueryOptions<V>> = {}): Accessor<QueryView<V>> {
  const followed = createMemo(() => {
    const live = new ObservedQuery(access(store), access(options));
    const [view, setView] = createSignal(live.view);
    onCleanup(live.subscribe((next) => void setView(() => next)));
    return view;
  });
  return () => followed()();
}

/** Returns the view of a window, its `rows` in order and where it is, as a signal, until its owner ends. The window may be a signal. */
export const useWindow = <V>(window: MaybeAccessor<LiveWindow<V>>): Accessor<WindowView<V>> => useLive(window);

/** Returns the view of counts, their `groups` and the `total`, as a signal, until its owner ends. The counts may be a signal. */
export const useCounts = (counts: MaybeAccessor<LiveCounts>): Accessor<CountsView> => useLive(counts);

function useLive<D>(live: MaybeAccessor<Live<D>>): Accessor<D> {
  const followed = createMemo(() => {
    const one = access(live);
    const [view, setView] = createSignal(one.view);
    onCleanup(one.subscribe((next) => void setView(() => next)));
    return view;
  });
  return () => followed()();
}

type MaybeAccessor<T extends object | string> = T | Accessor<T>;

const access = <T extends object | string>(value: MaybeAccessor<T>): T => (typeof value === 'function' ? value() : value);

/**
 * Returns the resources of a watch by key as a store of Solid, until its owner ends. What
 * reads one resource, or one field of its value, runs again only when that changes. The
 * values are copies: Solid changes them in place. The key `__proto__` is left out, since Solid
 * has none.
 */
export function useResources<V>(store: Readable<V>): Readonly<Record<string, Resource<V>>> {
  const [resources, setResources] = createStore<Record<string, Resource<V>>>(Object.create(null));
  const remove = (key: string) => setResources(key, undefined as never);
  const set = (key: string, resource: Resource<V>) => {
    const copy = structuredClone(resource);
    if (hasSpecialName(copy)) remove(key);
    setResources(key, reconcile(copy));
  };
  const take = (key: string, resource: Resource<V> | undefined) => {
    if (key !== '__proto__') resource ? set(key, resource) : remove(key);
  };
  const end = store.subscribe(({ resources: next }, { replaced, keys }) => {
    const changed = replaced ? new Set([...Object.keys(resources), ...next.keys()]) : keys;
    batch(() => changed.forEach((key) => take(key, next.get(key))));
  });
  onCleanup(end);
  return resources;
}

// Solid does not change fields with these names, so a resource that has one is replaced.
const special = new Set(['__proto__', 'constructor', 'prototype']);

function hasSpecialName(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, part]) => special.has(name) || hasSpecialName(part));
}
