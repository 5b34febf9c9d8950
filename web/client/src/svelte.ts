import { createSubscriber } from 'svelte/reactivity';
import type { CountsView, LiveCounts } from './counts.js';
import type { Live, Readable } from './listeners.js';
import { ObservedQuery, type QueryOptions, type QueryView } from './live_query.js';
import { onKey } from './on_key.js';
import type { Resource } from './resource.js';
import type { View } from './view.js';
import type { LiveWindow, WindowView } from './window.js';

export type { Readable } from './listeners.js';

/**
 * Returns an object whose `current` is the view of a watch, for runes: what reads it in an
 * effect, in `$derived` or in a template runs again when it changes. The store is subscribed to
 * only while something does. A store itself is one of Svelte's too, so `$notes` works without this.
 */
export const useWatch = <V>(store: Readable<V>): { readonly current: View<V> } => useLive(store);

/** Returns an object whose `current` is the view of a window: its `rows` in order, and where it is, as useWatch does for a watch. */
export const useWindow = <V>(window: LiveWindow<V>): { readonly current: WindowView<V> } => useLive(window);

/** Returns an object whose `current` is the view of counts: their `groups` and the `total`, as useWatch does for a watch. */
export const useCounts = (counts: LiveCounts): { readonly current: CountsView } => useLive(counts);

function useLive<D>(live: Live<D>): { readonly current: D } {
  const subscribe = createSubscriber((update) => live.subscribe(exceptFirst(update)));
  return {
    get current() {
      subscribe();
      return live.view;
    },
  };
}

/**
 * Returns an object whose `current` is the resource of one key, or undefined if there is none.
 * A change runs only what reads its key. Where the store or the key changes:
 * `const note = $derived(useResource(notes, id))`.
 */
export function useResource<V>(store: Readable<V>, key: string): { readonly current: Resource<V> | undefined } {
  const subscribe = createSubscriber((update) => onKey(store, key, exceptFirst(update)));
  return {
    get current() {
      subscribe();
      return store.view.resources.get(key);
    },
  };
}

/**
 * Returns an object whose `current` is the view of a query: its `rows` are the resources that `filter` selects, in the order of
 * `compare`. A change costs time for the changed keys. Where the store or the options change:
 * `const busy = $derived(useQuery(pods, { filter }))`.
 */
export function useQuery<V>(store: Readable<V>, options: QueryOptions<V> = {}): { readonly current: QueryView<V> } {
  return useLive(new ObservedQuery(store, options));
}

// The first call comes at once, with what is read already.
function exceptFirst(run: () => void): () => void {
  let first = true;
  return () => {
    if (!first) run();
    first = false;
  };
}
