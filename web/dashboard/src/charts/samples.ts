/** A number at a time, in ms as of Date.now; NaN if it is unknown. */
export interface Sample {
  readonly at: number;
  readonly value: number;
}

// Ten minutes of responses, one per second.
const maxSamples = 600;

/**
 * Numbers over time, by name. They outlive the page that shows them, so that the
 * charts have a history when the page is shown again.
 */
export class Samples {
  private readonly byName = new Map<string, Sample[]>();

  /** Adds the numbers of all names at a time. A time that is already known is ignored. */
  note(values: ReadonlyMap<string, number>, at: number): void {
    for (const name of this.byName.keys()) if (!values.has(name)) this.byName.delete(name);
    for (const [name, value] of values) this.add(name, { at, value });
  }

  /** Adds samples from before the first one of their name, which is replaced if it is unknown. */
  fill(earlier: ReadonlyMap<string, readonly Sample[]>): void {
    for (const [name, samples] of earlier) {
      const own = this.of(name);
      const known = own.slice(Number.isNaN(own[0]?.value) ? 1 : 0);
      const first = known[0]?.at ?? Infinity;
      this.byName.set(name, [...samples.filter(({ at }) => at < first), ...known].slice(-maxSamples));
    }
  }

  /** Returns the samples of a name, the oldest first. */
  of(name: string): readonly Sample[] {
    return this.byName.get(name) ?? [];
  }

  private add(name: string, sample: Sample): void {
    let samples = this.byName.get(name) ?? [];
    if (sample.at === samples.at(-1)?.at) return;
    if (sample.at < end(samples)) samples = []; // the clock was set back
    samples.push(sample);
    if (samples.length > maxSamples) samples.shift();
    this.byName.set(name, samples);
  }
}

/** The time of the newest sample. */
export const end = (samples: readonly Sample[]): number => samples.at(-1)?.at ?? 0;

/** The highest value in the last windowMs; NaN if unknown. */
export function most(samples: readonly Sample[], windowMs: number): number {
  const from = end(samples) - windowMs;
  let max = NaN;
  for (const { at, value } of samples) {
    if (at > from && !(value <= max) && !Number.isNaN(value)) max = value;
  }
  return max;
}
