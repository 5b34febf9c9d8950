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
export function removeUnused(tide: Watches, spec: WatchSpec, store: Store): void {
  store.uses--;
  if (!store.view.error && (store.uses || store.added)) return;
  if (store.apart) tide.connectionOf(store)?.remove(store.watch);
  else if (current(tide, spec) === store) tide.remove(spec); // or else the page has removed it, and may follow it again
}

function current(tide: Watches, spec: WatchSpec): Store | undefined {
  try {
    return tide.store(spec);
  } catch {
    return undefined;
  }
}
