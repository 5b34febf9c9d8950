import { createSubscriber } from 'svelte/reactivity';
import type { Followed } from './followed.js';
import type { View } from './view.js';

/**
 * Returns an object whose `current` is the view of a watch, for runes: what reads it in an
 * effect, in `$derived` or in a template runs again when it changes. The store is subscribed to
 * only while something does. A store itself is one of Svelte's too, so `$notes` works without this.
 */
export function useWatch<V>(store: Followed<V>): { readonly current: View<V> } {
  const subscribe = createSubscriber((update) => {
    let first = true; // the call at once, with what is read already
    return store.subscribe(() => {
      if (!first) update();
      first = false;
    });
  });
  return {
    get current() {
      subscribe();
      return store.view;
    },
  };
}
