import type { Readable } from './listeners.js';
import type { View } from './view.js';

export interface ChangesOptions {
  /** Ends the iteration, which then throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The newest view, and what changed since the one before it. */
export interface Conflated<V> {
  readonly view: View<V>;
  /** Any key may have changed. */
  readonly replaced: boolean;
  /** The keys that were set or deleted; empty if everything was replaced. */
  readonly keys: ReadonlySet<string>;
}

/**
 * Iterates over the views of a store, beginning with the current one, whose keys are all that are
 * there. It keeps only the newest one for a loop that is slow, with the keys of those in between, so it never needs more
 * memory than there are keys. It ends when the store is closed, and throws the error if there is one.
 */
export async function* changes<V>(store: Readable<V>, { signal }: ChangesOptions = {}): AsyncGenerator<Conflated<V>, void, void> {
  signal?.throwIfAborted();
  const next = new Next<V>();
  const unsubscribe = store.subscribe((view, changes) => next.add(view, changes));
  const wake = () => next.wake();
  signal?.addEventListener('abort', wake);
  try {
    for (;;) {
      await next.arrival();
      signal?.throwIfAborted();
      const taken = next.take();
      if (!taken) continue;
      const { state, error } = taken.view;
      if (error) throw error;
      yield taken;
      if (state === 'closed') return;
    }
  } finally {
    unsubscribe();
    signal?.removeEventListener('abort', wake);
  }
}

/** What the next step of an iteration has. */
class Next<V> {
  #view: View<V> | undefined;
  #replaced = false;
  #keys = new Set<string>();
  #wake: () => void = () => {};

  add(view: View<V>, { replaced, keys }: Omit<Conflated<V>, 'view'>): void {
    this.#view = view;
    if (replaced) this.#keys.clear();
    this.#replaced ||= replaced;
    if (!this.#replaced) for (const key of keys) this.#keys.add(key);
    this.#wake();
  }

  wake(): void {
    this.#wake();
  }

  /** Resolves when there is something, or at wake. */
  async arrival(): Promise<void> {
    if (this.#view) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  take(): Conflated<V> | undefined {
    const [view, replaced, keys] = [this.#view, this.#replaced, this.#keys];
    this.#view = undefined;
    this.#replaced = false;
    this.#keys = new Set();
    return view && { view, replaced, keys };
  }
}
