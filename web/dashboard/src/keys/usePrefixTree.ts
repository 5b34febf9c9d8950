import type { Changes, View } from '@watchtide/client';
import { useEffect, useState } from 'react';
import type { ResourceStore } from '../gateway/tide';
import { inSlices } from '../resources/slices';
import { PrefixTree, separatorOf } from './prefixTree';

const stepLength = 1000;
const sampleSize = 1000;

/** The tree of the keys of a store; a new object whenever a count has changed. */
export interface Counted {
  /** undefined: the keys have no parts. */
  readonly tree: PrefixTree | undefined;
}

/** Counts the keys of a store by their prefixes; undefined until they are counted. */
export function usePrefixTree(store: ResourceStore): Counted | undefined {
  const [counted, setCounted] = useState<Counted>();
  useEffect(() => new Counter(store, setCounted).follow(), [store]);
  return counted;
}

/** Follows the keys of a store. All are counted in steps between which the page can draw; after that, each change is. */
class Counter {
  #keys = new Set<string>(); // those that are counted
  #tree: PrefixTree | undefined;
  #cancel: (() => void) | undefined; // of the count of all keys, while it is under way
  #waiting = new Set<string>(); // keys that changed meanwhile
  #frame = 0;

  constructor(
    private readonly store: ResourceStore,
    private readonly tell: (counted: Counted) => void,
  ) {}

  follow(): () => void {
    const unsubscribe = this.store.subscribe((view, changes) => this.#take(view, changes));
    return () => {
      unsubscribe();
      this.#cancel?.();
      cancelAnimationFrame(this.#frame);
    };
  }

  #take({ resources, revision }: View, { replaced, keys }: Changes): void {
    if (revision === '') return;
    const separator = this.#tree?.separator ?? separatorOf(first(resources.keys()));
    if (replaced || (!this.#tree && !this.#cancel && separator)) return this.#countAll(new Map(resources), separator);
    if (this.#cancel) for (const key of keys) this.#waiting.add(key);
    else this.#update(keys, resources);
    this.#tellSoon();
  }

  #countAll(resources: View['resources'], separator: PrefixTree['separator'] | undefined): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#waiting.clear();
    const tree = separator && new PrefixTree(separator);
    const keys = new Set<string>();
    let done = false;
    const cancel = inSlices(count(resources.keys(), keys, tree), () => {
      done = true;
      this.#cancel = undefined;
      [this.#keys, this.#tree] = [keys, tree];
      this.#update(this.#waiting, this.store.resources);
      this.#waiting.clear();
      this.#tellSoon();
    });
    if (!done) this.#cancel = cancel;
  }

  #update(changed: ReadonlySet<string>, resources: View['resources']): void {
    for (const key of changed) {
      const exists = resources.has(key);
      if (exists === this.#keys.has(key)) continue;
      if (exists) this.#keys.add(key);
      else this.#keys.delete(key);
      if (exists) this.#tree?.add(key);
      else this.#tree?.remove(key);
    }
  }

  #tellSoon(): void {
    if (this.#cancel) return;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.tell({ tree: this.#tree });
    });
  }
}

function first(keys: Iterable<string>): string[] {
  const sample: string[] = [];
  for (const key of keys) if (sample.push(key) === sampleSize) break;
  return sample;
}

function* count(all: Iterable<string>, keys: Set<string>, tree: PrefixTree | undefined): Generator<void, void> {
  for (const key of all) {
    keys.add(key);
    tree?.add(key);
    if (keys.size % stepLength === 0) yield;
  }
}
