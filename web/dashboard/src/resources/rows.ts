import type { Resource } from '@watchtide/client';
import type { Filter } from './filter';
import { comparing, place, ranking, sorted, type Compare, type Rank, type Sort } from './order';

/** One resource in the table. */
export interface Row {
  /** As in the store's map. */
  readonly key: string;
  resource: Resource;
  /** What it is sorted by. */
  readonly rank: Rank;
  /** Whether the filter lets it pass. */
  readonly listed: boolean;
  /** When it was created, as of performance.now; 0 if it was there before. */
  readonly born: number;
  /** When it was deleted; 0 while it is there. */
  gone: number;
}

/** What is shown of the resources, and in which order. */
export interface Arrangement {
  readonly sort: Sort;
  readonly filter: Filter | undefined;
}

/** How long a row that was deleted is still shown. */
export const fadeMs = 700;

const stepLength = 2000;
const few = 64; // moves so many that copying all rows once is cheaper

/**
 * The rows of a table, sorted and filtered.
 *
 * A change costs what it moves: a row that stays where it is, is changed in place;
 * another is taken out and put in by binary search. All rows are gone through only
 * when a snapshot replaces them, or when they are arranged anew, and that in steps
 * between which the page can draw.
 */
export class Rows {
  #all = new Map<string, Row>();
  #shown: Row[] = [];
  readonly #ghosts = new Map<string, Row>(); // deleted, and still in #shown
  #rank = ranking({ column: 'key', descending: false });
  #compare: Compare = comparing({ column: 'key', descending: false });
  #filter: Filter | undefined;

  /** In their order. Changed in place. */
  get shown(): readonly Row[] {
    return this.#shown;
  }

  /** How many resources there are, and how many of them the filter lets pass. */
  get total(): number {
    return this.#all.size;
  }

  get matching(): number {
    return this.#shown.length - this.#ghosts.size;
  }

  get(key: string): Row | undefined {
    return this.#all.get(key);
  }

  /** Where the row of a key is shown; -1 if it is not. */
  indexOf(key: string): number {
    const row = this.#all.get(key);
    if (!row) return -1;
    const index = place(this.#shown, row, this.#compare);
    return this.#shown[index] === row ? index : -1;
  }

  /** Some of the resources, from everywhere, to see what they are like. */
  sample(size: number): Resource[] {
    const every = Math.ceil(this.#all.size / size);
    const sample: Resource[] = [];
    let i = 0;
    for (const { resource } of this.#all.values()) {
      if (i++ % every === 0) sample.push(resource);
    }
    return sample;
  }

  /**
   * Shows the resources that there are, or others in their place, in another
   * arrangement. Until its end the rows are as they were, and changes must wait.
   */
  *arrange({ sort, filter }: Arrangement, resources?: ReadonlyMap<string, Resource>): Generator<void, void> {
    const rank = ranking(sort);
    const compare = comparing(sort);
    const all = new Map<string, Row>();
    const matching: Row[] = [];
    for (const [key, { resource, born }] of resources ? anew(resources) : this.#all) {
      const row: Row = { key, resource, rank: rank(resource), listed: !filter || filter(resource), born, gone: 0 };
      all.set(key, row);
      if (row.listed) matching.push(row);
      if (all.size % stepLength === 0) yield;
    }
    const shown = yield* sorted(matching, compare);
    this.#all = all;
    this.#shown = shown;
    this.#ghosts.clear();
    this.#rank = rank;
    this.#compare = compare;
    this.#filter = filter;
  }

  /** Puts and removes resources. A row of visible that is deleted stays until it is buried. */
  apply(changes: ReadonlyMap<string, Resource | undefined>, now: number, visible: ReadonlySet<string>): void {
    const leaving: Row[] = [];
    const coming: Row[] = [];
    for (const [key, resource] of changes) {
      if (resource) this.#put(key, resource, now, leaving, coming);
      else this.#remove(key, now, visible, leaving);
    }
    this.#move(leaving, coming);
  }

  /** Takes out the rows that have been deleted for long enough. Returns when the next one has been, Infinity for none. */
  bury(now: number): number {
    const leaving = [...this.#ghosts.values()].filter(({ gone }) => now - gone >= fadeMs);
    for (const { key } of leaving) this.#ghosts.delete(key);
    this.#move(leaving, []);
    return Math.min(...[...this.#ghosts.values()].map(({ gone }) => gone + fadeMs));
  }

  #put(key: string, resource: Resource, now: number, leaving: Row[], coming: Row[]): void {
    const before = this.#all.get(key);
    const rank = this.#rank(resource);
    const listed = !this.#filter || this.#filter(resource);
    if (before && before.rank === rank && before.listed === listed) {
      before.resource = resource;
      return;
    }
    const row: Row = { key, resource, rank, listed, born: before ? before.born : now, gone: 0 };
    this.#all.set(key, row);
    if (row.listed) coming.push(row);
    if (before?.listed) leaving.push(before);
    const ghost = this.#ghosts.get(key);
    if (ghost && this.#ghosts.delete(key)) leaving.push(ghost);
  }

  #remove(key: string, now: number, visible: ReadonlySet<string>, leaving: Row[]): void {
    const row = this.#all.get(key);
    if (!row) return;
    this.#all.delete(key);
    if (!row.listed) return;
    if (!visible.has(key)) return void leaving.push(row);
    row.gone = now;
    this.#ghosts.set(key, row);
  }

  #move(leaving: readonly Row[], coming: Row[]): void {
    if (leaving.length + coming.length <= few) {
      for (const row of leaving) this.#shown.splice(place(this.#shown, row, this.#compare), 1);
      for (const row of coming) this.#shown.splice(place(this.#shown, row, this.#compare), 0, row);
      return;
    }
    this.#weave(leaving, coming.sort(this.#compare));
  }

  // Copies what stays in stretches, from one row that leaves or comes to the next.
  #weave(leaving: readonly Row[], coming: readonly Row[]): void {
    const old = this.#shown;
    const gaps = Int32Array.from(leaving, (row) => place(old, row, this.#compare)).sort();
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
      copy(place(old, row, this.#compare));
      out.push(row);
    }
    copy(old.length);
    this.#shown = out;
  }
}

function* anew(resources: ReadonlyMap<string, Resource>): Generator<[string, Pick<Row, 'resource' | 'born'>]> {
  for (const [key, resource] of resources) yield [key, { resource, born: 0 }];
}
