// A chunk is split when it is longer: to insert moves at most this many entries.
const maxChunk = 512;

/**
 * A list that is always sorted. Its entries are in chunks: an insertion and a removal search the chunk in
 * logarithmic time, and move the entries of that chunk only.
 */
export class SortedList<T> {
  #chunks: T[][] = [];
  #size = 0;

  /** compare must tell any two entries apart. */
  constructor(private readonly compare: (a: T, b: T) => number) {}

  get size(): number {
    return this.#size;
  }

  /** Replaces all entries. */
  fill(entries: T[]): void {
    entries.sort(this.compare);
    this.#chunks = [];
    for (let i = 0; i < entries.length; i += maxChunk / 2) this.#chunks.push(entries.slice(i, i + maxChunk / 2));
    this.#size = entries.length;
  }

  insert(entry: T): void {
    const c = Math.max(0, Math.min(this.#chunkOf(entry), this.#chunks.length - 1));
    const chunk = (this.#chunks[c] ??= []);
    chunk.splice(this.#placeIn(chunk, entry), 0, entry);
    this.#size++;
    if (chunk.length > maxChunk) this.#chunks.splice(c + 1, 0, chunk.splice(maxChunk / 2));
  }

  /** Removes an entry that is in the list. */
  remove(entry: T): void {
    let c = this.#chunkOf(entry);
    let i = c < this.#chunks.length ? this.#placeIn(this.#chunks[c]!, entry) : 0;
    if (this.#chunks[c]?.[i] !== entry) [c, i] = this.#search(entry);
    const chunk = this.#chunks[c];
    if (!chunk) return;
    chunk.splice(i, 1);
    this.#size--;
    if (chunk.length === 0) this.#chunks.splice(c, 1);
  }

  at(index: number): T | undefined {
    return this.slice(index, index + 1)[0];
  }

  /** Returns the entries from start up to end. */
  slice(start: number, end: number): T[] {
    const all: T[] = [];
    let from = 0;
    for (const chunk of this.#chunks) {
      if (from >= end) break;
      if (from + chunk.length > start) all.push(...chunk.slice(Math.max(0, start - from), end - from));
      from += chunk.length;
    }
    return all;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (const chunk of this.#chunks) yield* chunk;
  }

  // The first chunk that does not end before an entry.
  #chunkOf(entry: T): number {
    return firstOf(this.#chunks, (chunk) => this.compare(chunk.at(-1)!, entry) >= 0);
  }

  #placeIn(chunk: T[], entry: T): number {
    return firstOf(chunk, (other) => this.compare(other, entry) >= 0);
  }

  // A comparison that contradicts itself, as with NaN, may have put it elsewhere.
  #search(entry: T): [chunk: number, index: number] {
    const c = this.#chunks.findIndex((chunk) => chunk.includes(entry));
    return [c, this.#chunks[c]?.indexOf(entry) ?? -1];
  }
}

function firstOf<T>(list: readonly T[], matches: (one: T) => boolean): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (matches(list[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
