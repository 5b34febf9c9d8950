import { mapKey, type Resource } from '@watchtide/client';
import type { WindowView } from '@watchtide/client/window';
import type { Row } from './row';
import type { TableRows } from './table';

// What is remembered of windows that were left, for samples.
const maxSeen = 2_000;

/** The rows of a table of which a window is loaded. */
export class WindowRows implements TableRows {
  #loaded: Row[] = [];
  #first = 0; // the place of the first of them
  #places = new Map<string, number>(); // in #loaded, by key
  readonly #seen = new Map<string, Resource>(); // those that were loaded last
  length = 0;
  total = 0;

  get matching(): number {
    return this.total;
  }

  /** Shows a window. reversed: its last row comes first. */
  show({ rows, total, before }: Pick<WindowView, 'rows' | 'total' | 'before'>, reversed: boolean): void {
    const known = this.#loaded;
    const last = known.length - 1;
    this.total = Math.max(total, before + rows.length); // it comes later than rows
    const shown = reversed ? [...rows].reverse() : rows;
    this.#loaded = shown.map((resource, i) => {
      const key = mapKey(resource);
      const row = known[this.#places.get(key) ?? Math.min(i, last)];
      return row?.resource === resource ? row : rowOf(key, resource);
    });
    this.#first = reversed ? this.total - before - rows.length : before;
    this.#places = new Map(this.#loaded.map(({ key }, i) => [key, i]));
    this.length = this.total;
    for (const { key, resource } of this.#loaded) this.#remember(key, resource);
  }

  /** Forgets what samples are made of: other resources follow. */
  forget(): void {
    this.#seen.clear();
  }

  #remember(key: string, resource: Resource): void {
    this.#seen.delete(key);
    this.#seen.set(key, resource);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > maxSeen) this.#seen.delete(oldest!);
  }

  at(index: number): Row | undefined {
    return this.#loaded[index - this.#first];
  }

  slice(first: number, last: number): readonly Row[] {
    const count = last - first;
    const from = Math.max(0, Math.min(first - this.#first, this.#loaded.length - count));
    return this.#loaded.slice(from, from + count);
  }

  get(key: string): Row | undefined {
    return this.#loaded[this.#places.get(key) ?? -1];
  }

  indexOf(key: string): number {
    const place = this.#places.get(key);
    return place === undefined ? -1 : this.#first + place;
  }

  sample(size: number): Resource[] {
    return [...this.#seen.values()].slice(-size);
  }

  /** The resources of the window, by key. */
  get resources(): ReadonlyMap<string, Resource> {
    return new Map(this.#loaded.map(({ key, resource }) => [key, resource]));
  }
}

const rowOf = (key: string, resource: Resource): Row => ({ key, resource, rank: undefined, listed: true, createdAt: 0, deletedAt: 0 });
