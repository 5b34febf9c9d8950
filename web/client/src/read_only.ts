/**
 * A map that can only be read, and that is another object for each state: the resources of a view.
 *
 * It takes no copy: all of them read one map, so that a new one takes the same time however
 * many entries there are, and an old one shows the newest state until a snapshot
 * replaces the map. `new Map(resources)` is a snapshot that stands still.
 */
export class ReadOnly<K, V> implements ReadonlyMap<K, V> {
  // Not #map: some frameworks wrap what they observe in a Proxy, which has no private names.
  constructor(private readonly map: ReadonlyMap<K, V>) {}

  get size() {
    return this.map.size;
  }

  get(key: K) {
    return this.map.get(key);
  }

  has(key: K) {
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

  forEach(run: (value: V, key: K, all: ReadonlyMap<K, V>) => void, thisArg?: unknown): void {
    this.map.forEach((value, key) => run.call(thisArg, value, key, this));
  }
}
