import type { Resource } from '@watchtide/client';
import type { Filter } from '../query/holds';
import { type Compare, comparator, insertionIndex, ranker, type Sort, sorted } from './order';
import type { Row } from './row';
import type { TableRows } from './table';

/** The order and the filter of the rows. */
export interface Arrangement {
  readonly sort: Sort;
  readonly filter: Filter | undefined;
}

/** The time for which a deleted row is still shown. */
export const fadeMs = 700;

const stepLength = 2000;
const maxSplices = 64; // for more moves, copying all rows once is cheaper

/**
 * The rows of a table that are all loaded, sorted and filtered.
 *
 * A row that keeps its place is changed in place; others are removed and inserted by
 * binary search. All rows are visited only when a snapshot replaces them, or the order
 * or filter changes, and then in steps between which the page can draw.
 */
export class Rows implements TableRows {
  #all = new Map<string, Row>();
  #shown: Row[] = [];
  readonly #fading = new Map<string, Row>(); // deleted, but still in #shown
  #sort: Sort = { column: 'key', descending: false };
  #rank = ranker({ column: 'key', descending: false });
  #compare: Compare = comparator({ column: 'key', descending: false });
  #filter: Filter | undefined;

  /** The visible rows in order. Changed in place. */
  get shown(): readonly Row[] {
    return this.#shown;
  }

  get length(): number {
    return this.#shown.length;
  }

  at(index: number): Row | undefined {
    return this.#shown[index];
  }

  slice(first: number, last: number): readonly Row[] {
    return this.#shown.slice(first, last);
  }

  /** The number of resources, and of those that match the filter. */
  get total(): number {
    return this.#all.size;
  }

  get matching(): number {
    return this.#shown.length - this.#fading.size;
  }

  get(key: string): Row | undefined {
    return this.#all.get(key);
  }

  /** Returns the index of the row of a key; -1 if it is not shown. */
  indexOf(key: string): number {
    const row = this.#all.get(key);
    if (!row) return -1;
    const index = insertionIndex(this.#shown, row, this.#compare);
    return this.#shown[index] === row ? index : -1;
  }

  /** Returns a sample of the resources, evenly spread. */
  sample(size: number): Resource[] {
    const every = Math.max(1, Math.ceil(this.#all.size / size)); // 1 also while all rows are fading
    const sample: Resource[] = [];
    if (this.#filter) {
      let i = 0;
      for (const { resource } of this.#all.values()) {
        if (i++ % every === 0) sample.push(resource);
      }
    } else {
      for (let i = 0; i < this.#shown.length; i += every) sample.push(this.#shown[i]!.resource);
    }
    return sample;
  }

  /**
   * Sorts and filters the current resources, or new ones that replace them. The rows
   * do not change before its end, and changes must wait until then.
   */
  *arrange({ sort, filter }: Arrangement, resources?: ReadonlyMap<string, Resource>): Generator<void, void> {
    if (!resources && this.#sort.column === sort.column && this.#sort.descending === sort.descending) return yield* this.#select(filter);
    const rank = ranker(sort);
    const compare = comparator(sort);
    const all = new Map<string, Row>();
    const matching: Row[] = [];
    for (const [key, { resource, createdAt }] of resources ? newRows(resources) : this.#all) {
      const row: Row = { key, resource, rank: rank(resource), listed: !filter || filter(resource), createdAt, deletedAt: 0 };
      all.set(key, row);
      if (row.listed) matching.push(row);
      if (all.size % stepLength === 0) yield;
    }
    const shown = yield* sorted(matching, compare);
    this.#all = all;
    this.#shown = shown;
    this.#fading.clear();
    this.#sort = sort;
    this.#rank = rank;
    this.#compare = compare;
    this.#filter = filter;
  }

  // Selects from the rows that there are; those of an unfiltered table are sorted already.
  *#select(filter: Filter | undefined): Generator<void, void> {
    const matching: Row[] = [];
    let steps = 0;
    for (const row of this.#filter ? this.#all.values() : this.#shown) {
      if (row.deletedAt === 0 && (!filter || filter(row.resource))) matching.push(row);
      if (++steps % stepLength === 0) yield;
    }
    const shown = this.#filter ? yield* sorted(matching, this.#compare) : matching;
    for (const row of this.#shown) row.listed = false;
    for (const row of shown) row.listed = true;
    this.#shown = shown;
    this.#fading.clear();
    this.#filter = filter;
  }

  /** Sets and deletes resources. The deleted ones among visible stay until removeFaded. */
  apply(changes: ReadonlyMap<string, Resource | undefined>, now: number, visible: ReadonlySet<string>): void {
    const leaving: Row[] = [];
    const coming: Row[] = [];
    for (const [key, resource] of changes) {
      if (resource) this.#put(key, resource, now, leaving, coming);
      else this.#remove(key, now, visible, leaving);
    }
    this.#move(leaving, coming);
  }

  /** Removes the deleted rows that have faded. Returns when the next one will have, or Infinity for none. */
  removeFaded(now: number): number {
    const leaving = [...this.#fading.values()].filter(({ deletedAt }) => now - deletedAt >= fadeMs);
    for (const { key } of leaving) this.#fading.delete(key);
    this.#move(leaving, []);
    return Math.min(...[...this.#fading.values()].map(({ deletedAt }) => deletedAt + fadeMs));
  }

  #put(key: string, resource: Resource, now: number, leaving: Row[], coming: Row[]): void {
    const before = this.#all.get(key);
    const rank = this.#rank(resource);
    const listed = !this.#filter || this.#filter(resource);
    if (before && before.rank === rank && before.listed === listed) {
      before.resource = resource;
      return;
    }
    const row: Row = { key, resource, rank, listed, createdAt: before ? before.createdAt : now, deletedAt: 0 };
    this.#all.set(key, row);
    if (row.listed) coming.push(row);
    if (before?.listed) leaving.push(before);
    const fading = this.#fading.get(key);
    if (fading && this.#fading.delete(key)) leaving.push(fading);
  }

  #remove(key: string, now: number, visible: ReadonlySet<string>, leaving: Row[]): void {
    const row = this.#all.get(key);
    if (!row) return;
    this.#all.delete(key);
    if (!row.listed) return;
    if (!visible.has(key)) return void leaving.push(row);
    row.deletedAt = now;
    this.#fading.set(key, row);
  }

  #move(leaving: readonly Row[], coming: Row[]): void {
    if (leaving.length + coming.length <= maxSplices) {
      for (const row of leaving) this.#shown.splice(insertionIndex(this.#shown, row, this.#compare), 1);
      for (const row of coming) this.#shown.splice(insertionIndex(this.#shown, row, this.#compare), 0, row);
      return;
    }
    this.#rebuild(leaving, coming.sort(this.#compare));
  }

  // Copies the rows that stay, in runs between those that are removed or inserted.
  #rebuild(leaving: readonly Row[], coming: readonly Row[]): void {
    const old = this.#shown;
    const gaps = Int32Array.from(leaving, (row) => insertionIndex(old, row, this.#compare)).sort();
    const out: Row[] = [];
    let from = 0;
    let gap = 0;
    const copy = (to: number) => {
      for (; from < to; from++) {
        if (gaps[gap] === from) gap++;
        else out.push(old[from]!);
      }
    };
    for (const row of coming) {
      copy(insertionIndex(old, row, this.#compare));
      out.push(row);
    }
    copy(old.length);
    this.#shown = out;
  }
}

function* newRows(resources: ReadonlyMap<string, Resource>): Generator<[string, Pick<Row, 'resource' | 'createdAt'>]> {
  for (const [key, resource] of resources) yield [key, { resource, createdAt: 0 }];
}
