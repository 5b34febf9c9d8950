import { useMemo, useSyncExternalStore } from 'react';
import type { Store, View } from './index.js';

/**
 * Returns the view of a watch, or what a selector takes from it; the component is
 * rendered again when that changes.
 *
 * The map of resources is changed in place, and so is the same until the next
 * snapshot: select the view, a resource, or something computed from them. A selector
 * that returns a new object each time, such as an array, needs isEqual, or else the
 * component is rendered for every change.
 */
export function useWatch<V>(store: Store<V>): View<V>;
export function useWatch<V, S>(store: Store<V>, select: (view: View<V>) => S, isEqual?: (a: S, b: S) => boolean): S;
export function useWatch<V, S>(
  store: Store<V>,
  select: (view: View<V>) => S | View<V> = identity,
  isEqual: (a: S | View<V>, b: S | View<V>) => boolean = Object.is,
): S | View<V> {
  const subscribe = useMemo(() => (changed: () => void) => store.subscribe(changed), [store]);
  const selection = useMemo(() => memoized(store, select, isEqual), [store, select, isEqual]);
  return useSyncExternalStore(subscribe, selection, selection);
}

const identity = <V>(view: View<V>) => view;

// React reads the snapshot often, and must get the same object until it changes.
function memoized<V, S>(store: Store<V>, select: (view: View<V>) => S, isEqual: (a: S, b: S) => boolean): () => S {
  let last: { view: View<V>; selected: S } | undefined;
  return () => {
    const { view } = store;
    if (last?.view === view) return last.selected;
    const selected = select(view);
    last = { view, selected: last && isEqual(last.selected, selected) ? last.selected : selected };
    return last.selected;
  };
}
