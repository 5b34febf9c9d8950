import { equal } from './equal.js';
import { attempt, type Readable } from './listeners.js';
import type { Resource } from './resource.js';

/** Called for each resource. key is that of the map. */
export interface ChangeHandlers<V> {
  onAdd?(resource: Resource<V>, key: string): void;
  onUpdate?(before: Resource<V>, after: Resource<V>, key: string): void;
  onDelete?(before: Resource<V>, key: string): void;
}

/**
 * Calls the handlers for what is added, updated and deleted, until the returned function is called; at
 * first, all that is there is added. After a reset they are called for the difference only. It keeps a map of the resources.
 */
export function onChange<V>(store: Readable<V>, handlers: ChangeHandlers<V>): () => void {
  const known = new Map<string, Resource<V>>();
  return store.subscribe(({ resources }, { replaced, keys }) => {
    for (const key of replaced ? new Set([...known.keys(), ...resources.keys()]) : keys) {
      const [before, after] = [known.get(key), resources.get(key)];
      if (after) known.set(key, after);
      else known.delete(key);
      attempt(() => tell(handlers, key, before, after));
    }
  });
}

function tell<V>(handlers: ChangeHandlers<V>, key: string, before: Resource<V> | undefined, after: Resource<V> | undefined): void {
  if (!before) return void (after && handlers.onAdd?.(after, key));
  if (!after) return handlers.onDelete?.(before, key);
  if (!sameResource(before, after)) handlers.onUpdate?.(before, after, key);
}

/** Reports whether a resource is unchanged. After a reset it is another object. */
export const sameResource = (a: Resource, b: Resource): boolean => a === b || (a.revision === b.revision && equal(a.value, b.value));
