import { createSubscriber } from 'svelte/reactivity';
import type { Followed } from './followed.js';
import { onKey } from './on_key.js';
import type { Resource } from './resource.js';
import type { View } from './view.js';

/**
 * Returns an object whose `current` is the view of a watch, for runes: what reads it in an
 * effect, in `$derived` or in a template runs again when it changes. The store is subscribed to
 * only while something does. A store itself is one of Svelte's too, so `$notes` works without this.
 */
export function useWatch<V>(store: Followed<V>): { readonly current: View<V> } {
  const subscribe = createSubscriber((update) => store.subscribe(exceptFirst(update)));
  return {
    get current() {
      subscribe();
      return store.view;
    },
  };
}

/**
 * Returns an object whose `current` is the resource of one key, or undefined if there is none.
 * A change runs only what reads its key. Where the store or the key changes:
 * `const note = $derived(useResource(notes, id))`.
 */
export function useResource<V>(store: Followed<V>, key: string): { readonly current: Resource<V> | undefined } {
  const subscribe = createSubscriber((update) => onKey(store, key, exceptFirst(update)));
  return {
    get current() {
      subscribe();
      return store.view.resources.get(key);
    },
  };
}

// The first call comes at once, with what is read already.
function exceptFirst(run: () => void): () => void {
  let first = true;
  return () => {
    if (!first) run();
    first = false;
  };
}
