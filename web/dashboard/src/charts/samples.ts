/** A number at a time, in ms as of Date.now; NaN where it cannot be known. */
export interface Sample {
  readonly at: number;
  readonly value: number;
}

// Ten minutes of answers that come each second.
const kept = 600;

/**
 * What numbers were over time, by name. It lives longer than the page that shows
 * it, so that who comes back finds what was.
 */
export class Samples {
  private readonly byName = new Map<string, Sample[]>();

  /** Takes the numbers of a time, of all the names that there are. The same time twice adds nothing. */
  note(values: ReadonlyMap<string, number>, at: number): void {
    for (const name of this.byName.keys()) if (!values.has(name)) this.byName.delete(name);
    for (const [name, value] of values) this.add(name, { at, value });
  }

  /** The samples of a name, the oldest first. */
  of(name: string): readonly Sample[] {
    return this.byName.get(name) ?? [];
  }

  private add(name: string, sample: Sample): void {
    let samples = this.byName.get(name) ?? [];
    if (sample.at === samples.at(-1)?.at) return;
    if (sample.at < end(samples)) samples = []; // the clock was set back
    samples.push(sample);
    if (samples.length > kept) samples.shift();
    this.byName.set(name, samples);
  }
}

/** The time of the newest. */
export const end = (samples: readonly Sample[]): number => samples.at(-1)?.at ?? 0;

/** The most in the newest windowMs; NaN if nothing is known. */
export function most(samples: readonly Sample[], windowMs: number): number {
  const from = end(samples) - windowMs;
  let max = NaN;
  for (const { at, value } of samples) {
    if (at > from && !(value <= max) && !Number.isNaN(value)) max = value;
  }
  return max;
}
