import type { Readable } from './listeners.js';
import type { View } from './view.js';

const waiting = new WeakMap<Readable, Promise<void>>();

/** Reports whether there is something to show. A store without an error that is closed before that stays empty. */
export const hasState = ({ revision, state, error }: Pick<View, 'revision' | 'state' | 'error'>) =>
  revision !== '' || (state === 'closed' && !error);

/** Resolves when there is something to show, or there never will be: the same promise for the same store. */
export function settled(store: Readable): Promise<void> {
  let promise = waiting.get(store);
  if (!promise) {
    promise = new Promise<void>((resolve) => whenSettled(store, resolve)).then(() => void waiting.delete(store));
    waiting.set(store, promise);
  }
  return promise;
}

function whenSettled(store: Readable, done: () => void): void {
  let ended = false;
  let unsubscribe: (() => void) | undefined;
  unsubscribe = store.subscribe((view) => {
    if (ended || !(hasState(view) || view.state === 'closed')) return;
    ended = true;
    done();
    unsubscribe?.(); // undefined in the first call
  });
  if (ended) unsubscribe();
}
