import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import type { Store, View } from './index.js';

/**
 * Returns the view of a watch, or what a selector takes from it; the component is
 * rendered again when that changes.
 *
 * A selector that returns a new object each time, such as an array, needs isEqual, or
 * else the component is rendered for every change. Both may be written in place.
 */
export function useWatch<V>(store: Store<V>): View<V>;
export function useWatch<V, S>(store: Store<V>, select: (view: View<V>) => S, isEqual?: (a: S, b: S) => boolean): S;
export function useWatch<V, S>(
  store: Store<V>,
  select: (view: View<V>) => S | View<V> = identity,
  isEqual: (a: S | View<V>, b: S | View<V>) => boolean = Object.is,
): S | View<V> {
  const rendered = useRef<Rendered<S | View<V>>>(undefined);
  const subscribe = useMemo(() => (changed: () => void) => store.subscribe(changed), [store]);
  const selection = useMemo(() => memoized(store, select, isEqual, rendered), [store, select, isEqual]);
  const selected = useSyncExternalStore(subscribe, selection, selection);
  useEffect(() => {
    rendered.current = { selected };
  }, [selected]);
  return selected;
}

/** What a component has shown. */
interface Rendered<S> {
  readonly selected: S;
}

const identity = <V>(view: View<V>) => view;

// React reads the snapshot often, and must get the same object until it changes. A selector
// that is a new function for each render begins with what was rendered last.
function memoized<V, S>(
  store: Store<V>,
  select: (view: View<V>) => S,
  isEqual: (a: S, b: S) => boolean,
  rendered: { readonly current: Rendered<S> | undefined },
): () => S {
  let last: { view: View<V>; selected: S } | undefined;
  return () => {
    const { view } = store;
    if (last?.view === view) return last.selected;
    const selected = select(view);
    const before = last ?? rendered.current;
    last = { view, selected: before && isEqual(before.selected, selected) ? before.selected : selected };
    return last.selected;
  };
}
