import type { Readable } from './listeners.js';
import type { View } from './view.js';

export interface ReadyOptions {
  /** Waits until the store is in sync, and not only until it has something to show. */
  readonly inSync?: boolean | undefined;
  /** Ends the wait, which then rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves with the first view that has a consistent state: at the end of the first snapshot,
 * or at once for a store that has begun with a snapshot. Rejects if the store is closed, with its error.
 */
export function ready<V>(store: Readable<V>, { inSync = false, signal }: ReadyOptions = {}): Promise<View<V>> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    let unsubscribe: (() => void) | undefined;
    let settled = false;
    const settle = (run: () => void) => {
      settled = true;
      unsubscribe?.();
      signal?.removeEventListener('abort', abort);
      run();
    };
    const abort = () => settle(() => reject(signal!.reason));
    signal?.addEventListener('abort', abort);
    unsubscribe = store.subscribe((view) => {
      if (settled) return;
      if (view.state === 'closed') settle(() => reject(view.error ?? new Error('the store is closed')));
      else if (inSync ? view.state === 'in_sync' : hasResources(view)) settle(() => resolve(view));
    });
    if (settled) unsubscribe();
  });
}

const hasResources = ({ state }: View) => state !== 'connecting' && state !== 'priming';
