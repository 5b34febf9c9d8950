import type { WatchSpec } from './spec.js';
import type { Store } from './store.js';
import type { Watches } from './watch.js';

/** Follows a watch for a part of the page that says when it needs it no longer, by removeUnused. */
export function addUsed(tide: Watches, spec: WatchSpec): Store {
  const store = tide.add(spec);
  store.added--; // not by the page itself
  store.uses++;
  return store;
}

/** Ends a use. The store is removed, unless another part of the page uses it, or the page itself has added it. */
export function removeUnused(tide: Watches, store: Store): void {
  store.uses--;
  if (store.view.error || !(store.uses || store.added)) tide.connectionOf(store)?.remove(store.watch); // none if the page has removed it
}
