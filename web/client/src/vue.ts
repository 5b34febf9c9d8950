import { type MaybeRefOrGetter, type ShallowRef, shallowReadonly, shallowRef, toValue, watchEffect } from 'vue';
import type { CountsView, LiveCounts } from './counts.js';
import type { Live, Readable } from './listeners.js';
import { ObservedQuery, type QueryOptions, type QueryView } from './live_query.js';
import { onKey } from './on_key.js';
import type { Resource } from './resource.js';
import type { View } from './view.js';
import type { LiveWindow, WindowView } from './window.js';

export type { Readable } from './listeners.js';

/**
 * Returns a reference to the view of a watch, until the scope in which it is called ends, such
 * as that of a component. Each view is a new object, so `computed` works on it as usual. The
 * store may be a reference or a getter too; then the reference follows the one that it returns.
 */
export const useWatch = <V>(store: MaybeRefOrGetter<Readable<V>>): Readonly<ShallowRef<View<V>>> => useLive(store);

/** Returns a reference to the view of a window: its `rows` in order, and where it is, as useWatch does for a watch. */
export const useWindow = <V>(window: MaybeRefOrGetter<LiveWindow<V>>): Readonly<ShallowRef<WindowView<V>>> => useLive(window);

/** Returns a reference to the view of counts: their `groups` and the `total`, as useWatch does for a watch. */
export const useCounts = (counts: MaybeRefOrGetter<LiveCounts>): Readonly<ShallowRef<CountsView>> => useLive(counts);

function useLive<D>(live: MaybeRefOrGetter<Live<D>>): Readonly<ShallowRef<D>> {
  const view = shallowRef(toValue(live).view);
  watchEffect(
    (onCleanup) => {
      const followed = toValue(live);
      onCleanup(
        followed.subscribe((next) => {
          view.value = next;
        }),
      );
    },
    { flush: 'sync' },
  );
  return shallowReadonly(view) as Readonly<ShallowRef<D>>;
}

/**
 * Returns a reference to the resource of one key, or to undefined if there is none, until the
 * scope ends. A change costs time only for the references to its key. The store and the key may
 * be references or getters, as for useWatch.
 */
export function useResource<V>(
  store: MaybeRefOrGetter<Readable<V>>,
  key: MaybeRefOrGetter<string>,
): Readonly<ShallowRef<Resource<V> | undefined>> {
  const resource = shallowRef<Resource<V>>();
  const set = (next: Resource<V> | undefined) => {
    resource.value = next;
  };
  watchEffect((onCleanup) => onCleanup(onKey(toValue(store), toValue(key), set)), { flush: 'sync' });
  return shallowReadonly(resource) as Readonly<ShallowRef<Resource<V> | undefined>>;
}

/**
 * Returns a reference to the view of a query until the scope ends: its `rows` are the resources that `filter` selects, in the
 * order of `compare`. A change costs time for the changed keys. The store and the options may be references or getters: for
 * other ones, and whenever something that the getter reads changes, everything is filtered and sorted again.
 */
export function useQuery<V>(
  store: MaybeRefOrGetter<Readable<V>>,
  options: MaybeRefOrGetter<QueryOptions<V>> = {},
): Readonly<ShallowRef<QueryView<V>>> {
  const view = shallowRef() as ShallowRef<QueryView<V>>; // set at once
  watchEffect(
    (onCleanup) => {
      const live = new ObservedQuery(toValue(store), toValue(options));
      onCleanup(
        live.subscribe((next) => {
          view.value = next;
        }),
      );
    },
    { flush: 'sync' },
  );
  return shallowReadonly(view) as Readonly<ShallowRef<QueryView<V>>>;
}
