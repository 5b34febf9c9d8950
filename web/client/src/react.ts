import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import type { CountsView, LiveCounts } from './counts.js';
import type { Resource, View } from './index.js';
import type { Live, Readable } from './listeners.js';
import { ObservedQuery, type QueryOptions, type QueryView } from './live_query.js';
import { sameResource } from './on_change.js';
import { onKey } from './on_key.js';
import { mapKey } from './resource.js';
import { hasState, settled } from './settled.js';
import type { LiveWindow, WindowView } from './window.js';

export type { Readable } from './listeners.js';

/**
 * Returns the view of a watch, or what a selector takes from it; the component is
 * rendered again when that changes.
 *
 * A selector that returns a new object each time, such as an array, needs isEqual, or
 * else the component is rendered for every change. Both may be written in place.
 */
export function useWatch<V>(store: Readable<V>): View<V>;
export function useWatch<V, S>(store: Readable<V>, select: (view: View<V>) => S, isEqual?: (a: S, b: S) => boolean): S;
export function useWatch<V, S>(
  store: Readable<V> & { readonly rendered?: View<V> },
  select: (view: View<V>) => S | View<V> = identity,
  isEqual: (a: S | View<V>, b: S | View<V>) => boolean = Object.is,
): S | View<V> {
  const shown = useRef<Shown<S | View<V>>>(undefined);
  const subscribe = useMemo(() => (changed: () => void) => store.subscribe(changed), [store]);
  const selection = useMemo(() => memoized(() => store.view, select, isEqual, shown), [store, select, isEqual]);
  const rendered = useMemo(() => memoized(() => store.rendered ?? store.view, select, isEqual, shown), [store, select, isEqual]);
  const selected = useSyncExternalStore(subscribe, selection, rendered);
  useEffect(() => {
    shown.current = { selected };
  }, [selected]);
  return selected;
}

/**
 * Returns the resource of one key, or undefined if there is none; the component is rendered
 * again when that changes. A change costs time only for the components of its key, so this is
 * the hook for the rows of a long list, where each selector of useWatch runs for every change.
 */
export function useResource<V>(store: Readable<V> & { readonly rendered?: View<V> }, key: string): Resource<V> | undefined {
  const subscribe = useMemo(() => (changed: () => void) => onKey(store, key, changed), [store, key]);
  const { current, rendered } = useMemo(() => snapshots(store, key), [store, key]);
  return useSyncExternalStore(subscribe, current, rendered);
}

/**
 * Returns the view of a query: its `rows` are the resources that `filter` selects, in the order of `compare`; the component is
 * rendered again when that changes. A change costs time for the changed keys. Keep both functions outside of the component, or
 * in `useCallback`: for another function everything is filtered and sorted again.
 */
export function useQuery<V>(store: Readable<V> & { readonly rendered?: View<V> }, { filter, compare }: QueryOptions<V> = {}): QueryView<V> {
  const { subscribe, current, rendered } = useMemo(() => {
    const live = new ObservedQuery(store, { filter, compare });
    const shown = store.rendered ? new ObservedQuery(still(store.rendered), { filter, compare }) : live;
    return { subscribe: (changed: () => void) => live.subscribe(changed), current: () => live.view, rendered: () => shown.view };
  }, [store, filter, compare]);
  return useSyncExternalStore(subscribe, current, rendered);
}

/**
 * Returns the view of a window: its `rows` in order, and where it is; the component is rendered again when that changes.
 * Keep the window outside of the component, or in an effect that closes it.
 */
export const useWindow = <V>(window: LiveWindow<V>): WindowView<V> => useLive(window);

/**
 * Returns the view of counts: their `groups` and the `total`; the component is rendered again when that changes. Keep the
 * counts outside of the component, or in an effect that closes them.
 */
export const useCounts = (counts: LiveCounts): CountsView => useLive(counts);

const useLive = <D>(live: Live<D>): D =>
  useSyncExternalStore(
    useCallback((changed: () => void) => live.subscribe(changed), [live]),
    () => live.view,
    () => live.view,
  );

/**
 * Returns what useWatch returns, but suspends the component until there is something to
 * show: a Suspense boundary shows its fallback meanwhile. If the watch is refused before
 * that, it throws the error, for an error boundary.
 */
export function useWatchSuspense<V>(store: Readable<V>): View<V>;
export function useWatchSuspense<V, S>(store: Readable<V>, select: (view: View<V>) => S, isEqual?: (a: S, b: S) => boolean): S;
export function useWatchSuspense<V, S>(
  store: Readable<V> & { readonly rendered?: View<V> },
  select: (view: View<V>) => S | View<V> = identity,
  isEqual?: (a: S | View<V>, b: S | View<V>) => boolean,
): S | View<V> {
  const selected = useWatch(store, select, isEqual);
  const view = store.rendered && !hasState(store.view) ? store.rendered : store.view;
  if (hasState(view)) return selected;
  if (view.error) throw view.error;
  throw settled(store); // React renders again when it resolves
}

/** What a server has rendered of a watch, as plain data. */
export interface Rendered<V = unknown> {
  readonly resources: ReadonlyArray<Resource<V>>;
  readonly revision: string;
  /** When that was the state, in ms as of `Date.now`. */
  readonly since: number;
}

/**
 * Returns a store that stands still, for a server to render from. In the browser, `hydrating`
 * with the same data makes the first render the same.
 */
export const renderedStore = <V>(data: Rendered<V>): Readable<V> => still(viewOf(data));

/**
 * Returns a store for pages that a server has rendered: the first render of each component
 * shows what the server has rendered, however much the store has received meanwhile, and the
 * next one what the store has.
 */
export function hydrating<V>(store: Readable<V>, data: Rendered<V>): Readable<V> & { readonly rendered: View<V> } {
  return {
    rendered: viewOf(data),
    get view() {
      return store.view;
    },
    subscribe: (run) => store.subscribe(run),
  };
}

const still = <V>(view: View<V>): Readable<V> => ({
  view,
  subscribe(run) {
    run(view, { replaced: false, keys: new Set(view.resources.keys()) });
    return () => {};
  },
});

function viewOf<V>({ resources, revision, since }: Rendered<V>): View<V> {
  return { state: 'stale', since, reason: '', resources: new Map(resources.map((one) => [mapKey(one), one])), revision };
}

// The snapshots of one resource are the same object while it is unchanged, also after a reset and from what a
// server has rendered to what the store has.
function snapshots<V>(store: Readable<V> & { readonly rendered?: View<V> }, key: string) {
  let last: Resource<V> | undefined;
  const of = ({ resources }: View<V>) => {
    const resource = resources.get(key);
    if (!last || !resource || !sameResource(last, resource)) last = resource;
    return last;
  };
  return { current: () => of(store.view), rendered: () => of(store.rendered ?? store.view) };
}

/** What a component has shown. */
interface Shown<S> {
  readonly selected: S;
}

const identity = <V>(view: View<V>) => view;

// React reads the snapshot often, and must get the same object until it changes. A selector
// that is a new function for each render begins with what was rendered last.
function memoized<V, S>(
  current: () => View<V>,
  select: (view: View<V>) => S,
  isEqual: (a: S, b: S) => boolean,
  shown: { readonly current: Shown<S> | undefined },
): () => S {
  let last: { view: View<V>; selected: S } | undefined;
  return () => {
    const view = current();
    if (last?.view === view) return last.selected;
    const selected = select(view);
    const before = last ?? shown.current;
    last = { view, selected: before && isEqual(before.selected, selected) ? before.selected : selected };
    return last.selected;
  };
}
