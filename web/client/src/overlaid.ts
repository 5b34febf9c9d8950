import type { Resource } from './resource.js';

/** A map of resources with other ones laid over it; undefined lies over a resource that is to be gone. It takes no copy. */
export class Overlaid<V> implements ReadonlyMap<string, Resource<V>> {
  constructor(
    private readonly base: ReadonlyMap<string, Resource<V>>,
    private readonly over: ReadonlyMap<string, Resource<V> | undefined>,
  ) {}

  get size(): number {
    let { size } = this.base;
    for (const [key, resource] of this.over) size += Number(resource !== undefined) - Number(this.base.has(key));
    return size;
  }

  get(key: string): Resource<V> | undefined {
    return this.over.has(key) ? this.over.get(key) : this.base.get(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  *entries(): MapIterator<[string, Resource<V>]> {
    for (const [key, below] of this.base) {
      const resource = this.over.has(key) ? this.over.get(key) : below;
      if (resource) yield [key, resource];
    }
    for (const [key, resource] of this.over) if (resource && !this.base.has(key)) yield [key, resource];
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<Resource<V>> {
    for (const [, resource] of this.entries()) yield resource;
  }

  [Symbol.iterator](): MapIterator<[string, Resource<V>]> {
    return this.entries();
  }

  forEach(run: (resource: Resource<V>, key: string, resources: ReadonlyMap<string, Resource<V>>) => void, thisArg?: unknown): void {
    for (const [key, resource] of this.entries()) run.call(thisArg, resource, key, this);
  }
}
