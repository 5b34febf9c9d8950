import { attempt, type Readable } from './listeners.js';
import { sameResource } from './on_change.js';
import type { Changes } from './replica.js';
import type { Resource } from './resource.js';

type Run<V> = (resource: Resource<V> | undefined) => void;

const all = new WeakMap<object, unknown>(); // the Keys of each store

/**
 * Calls run with a resource, or undefined if there is none: at once, and after each change of it,
 * until the returned function is called. All calls for one store share a subscription, and a change costs time
 * for the keys that it concerns, however many others are subscribed to.
 */
export function onKey<V>(store: Readable<V>, key: string, run: Run<V>): () => void {
  const keys = (all.get(store) as Keys<V> | undefined) ?? new Keys(store);
  all.set(store, keys);
  return keys.add(key, run);
}

/** The subscriptions to single keys of one store. */
class Keys<V> {
  readonly #runs = new Map<string, Set<Run<V>>>();
  readonly #known = new Map<string, Resource<V> | undefined>();
  #unsubscribe: (() => void) | undefined;

  constructor(private readonly store: Readable<V>) {}

  add(key: string, run: Run<V>): () => void {
    const one: Run<V> = (resource) => run(resource); // allows the same function to subscribe twice
    const runs = this.#runs.get(key) ?? new Set();
    const resource = this.store.view.resources.get(key);
    if (runs.size === 0) this.#known.set(key, resource);
    this.#runs.set(key, runs.add(one)); // before the call, which may subscribe too, or change the store
    const remove = () => {
      if (runs.delete(one) && runs.size === 0) this.#remove(key, runs);
    };
    try {
      this.#follow();
      one(resource);
    } catch (error) {
      remove();
      throw error;
    }
    return remove;
  }

  #remove(key: string, runs: Set<Run<V>>): void {
    if (this.#runs.get(key) !== runs) return;
    this.#runs.delete(key);
    this.#known.delete(key);
    if (this.#runs.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  // The first call is for nobody: each has been called already.
  #follow(): void {
    if (this.#unsubscribe) return;
    let first = true;
    this.#unsubscribe = this.store.subscribe((_, changes) => {
      if (!first) this.#changed(changes);
      first = false;
    });
  }

  #changed({ replaced, keys }: Changes): void {
    const fewer = replaced || keys.size > this.#runs.size ? this.#runs.keys() : keys;
    for (const key of [...fewer]) if (this.#runs.has(key) && (replaced || keys.has(key))) this.#tell(key);
  }

  #tell(key: string): void {
    const [before, after] = [this.#known.get(key), this.store.view.resources.get(key)];
    this.#known.set(key, after);
    if (before === after || (before && after && sameResource(before, after))) return;
    const runs = this.#runs.get(key);
    for (const run of [...(runs ?? [])]) if (runs?.has(run)) attempt(() => run(after));
  }
}
