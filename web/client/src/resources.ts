import type { Resource } from './resource.js';

/**
 * The resources of a view, as a read-only map that is another object for each state.
 *
 * It takes no copy: all of them read one map, so that a new one takes the same time however
 * many resources there are, and an old one shows the newest state until a snapshot
 * replaces the map. `new Map(resources)` is a picture that stands still.
 */
export class Resources<V> implements ReadonlyMap<string, Resource<V>> {
  // Not #map: some frameworks wrap what they observe in a Proxy, which has no private names.
  constructor(private readonly map: ReadonlyMap<string, Resource<V>>) {}

  get size() {
    return this.map.size;
  }

  get(key: string) {
    return this.map.get(key);
  }

  has(key: string) {
    return this.map.has(key);
  }

  keys() {
    return this.map.keys();
  }

  values() {
    return this.map.values();
  }

  entries() {
    return this.map.entries();
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  forEach(run: (resource: Resource<V>, key: string, resources: ReadonlyMap<string, Resource<V>>) => void, thisArg?: unknown): void {
    this.map.forEach((resource, key) => run.call(thisArg, resource, key, this));
  }
}
