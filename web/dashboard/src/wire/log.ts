import type { Frame } from './frame';

// Values may be large, so both limits apply.
const maxFrames = 5000;
const maxBytes = 32 << 20;

/** The kept frames of a stream at one moment, and the counts of all frames. */
export interface LogContents {
  readonly frames: readonly Frame[];
  /** The number of frames that are no longer kept. */
  readonly dropped: number;
  readonly bytes: number;
  /** The number of frames of each type, in order of first appearance. */
  readonly types: ReadonlyMap<string, number>;
}

export const nothing: LogContents = { frames: [], dropped: 0, bytes: 0, types: new Map() };

/** Keeps the newest frames of a stream, and counts all of them. */
export class Log {
  #frames: Frame[] = [];
  #first = 0; // in #frames: the ones before are dropped, and removed from time to time
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

  /** The current contents, which later frames do not change. */
  get kept(): LogContents {
    return { frames: this.#frames.slice(this.#first), dropped: this.#dropped, bytes: this.#bytes, types: new Map(this.#types) };
  }

  // The newest frame is always kept, however large it is.
  get #tooMuch(): boolean {
    const frames = this.#frames.length - this.#first;
    return frames > maxFrames || (this.#keptBytes > maxBytes && frames > 1);
  }

  #drop(): void {
    this.#keptBytes -= this.#frames[this.#first]!.bytes;
    this.#first++;
    this.#dropped++;
    if (this.#first < maxFrames) return;
    this.#frames = this.#frames.slice(this.#first);
    this.#first = 0;
  }
}
