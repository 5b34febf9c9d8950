import type { Frame } from './frame';

// So much is kept to look at. Values may be large: both bounds hold.
const keepFrames = 5000;
const keepBytes = 32 << 20;

/** What is kept of a stream at one moment, and what was counted of all of it. */
export interface Kept {
  readonly frames: readonly Frame[];
  /** How many there were that are not kept any more. */
  readonly dropped: number;
  readonly bytes: number;
  /** How many of each type there were, in the order in which they first came. */
  readonly types: ReadonlyMap<string, number>;
}

export const nothing: Kept = { frames: [], dropped: 0, bytes: 0, types: new Map() };

/** The newest frames of a stream, and the counts of all. */
export class Log {
  #frames: Frame[] = [];
  #first = 0; // in #frames: those before it are dropped, and cut off when they are many
  #keptBytes = 0;
  #dropped = 0;
  #bytes = 0;
  #types = new Map<string, number>();

  add(frame: Frame): void {
    this.#frames.push(frame);
    this.#bytes += frame.bytes;
    this.#keptBytes += frame.bytes;
    this.#types.set(frame.type, (this.#types.get(frame.type) ?? 0) + 1);
    while (this.#tooMuch) this.#drop();
  }

  /** All that is known now, which later frames do not change. */
  get kept(): Kept {
    return { frames: this.#frames.slice(this.#first), dropped: this.#dropped, bytes: this.#bytes, types: new Map(this.#types) };
  }

  // The newest is kept, however large it is.
  get #tooMuch(): boolean {
    const frames = this.#frames.length - this.#first;
    return frames > keepFrames || (this.#keptBytes > keepBytes && frames > 1);
  }

  #drop(): void {
    this.#keptBytes -= this.#frames[this.#first]!.bytes;
    this.#first++;
    this.#dropped++;
    if (this.#first < keepFrames) return;
    this.#frames = this.#frames.slice(this.#first);
    this.#first = 0;
  }
}
