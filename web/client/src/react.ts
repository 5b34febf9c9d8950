import { useMemo, useSyncExternalStore } from 'react';
import type { Store, View } from './index.js';

/**
 * What is shown of a watch, or what a selector takes of it; the component is
 * rendered again when that is different.
 *
 * The map of resources is changed in place, and so is never different but after a
 * snapshot: select the view, a resource, or something made of them. A selection
 * that is made anew each time, such as an array, needs isEqual, if the component
 * shall not be rendered for changes that it does not show.
 */
export function useWatch<V>(store: Store<V>): View<V>;
export function useWatch<V, S>(store: Store<V>, select: (view: View<V>) => S, isEqual?: (a: S, b: S) => boolean): S;
export function useWatch<V, S>(
  store: Store<V>,
  select: (view: View<V>) => S | View<V> = whole,
  isEqual: (a: S | View<V>, b: S | View<V>) => boolean = Object.is,
): S | View<V> {
  const subscribe = useMemo(() => (changed: () => void) => store.subscribe(changed), [store]);
  const selection = useMemo(() => remembered(store, select, isEqual), [store, select, isEqual]);
  return useSyncExternalStore(subscribe, selection, selection);
}

const whole = <V>(view: View<V>) => view;

// React asks again and again, and must get the very same answer until it is another.
function remembered<V, S>(store: Store<V>, select: (view: View<V>) => S, isEqual: (a: S, b: S) => boolean): () => S {
  let last: { view: View<V>; selected: S } | undefined;
  return () => {
    const { view } = store;
    if (last?.view === view) return last.selected;
    const selected = select(view);
    last = { view, selected: last && isEqual(last.selected, selected) ? last.selected : selected };
    return last.selected;
  };
}
