/** A number at a time, in ms as of Date.now; NaN if it is unknown. */
export interface Sample {
  readonly at: number;
  readonly value: number;
}

// Ten minutes of responses, one per second.
const maxSamples = 600;

/** Between two samples that are further apart, the page has not measured: its tab was hidden, or the machine slept. */
export const gapMs = 5000;

// A sample is left out if one that was recorded stands for it.
const closeMs = 2500;

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

  /** Adds samples from before the first one of their name, and in its gaps. */
  fill(earlier: ReadonlyMap<string, readonly Sample[]>): void {
    for (const [name, samples] of earlier) this.byName.set(name, filled(this.of(name), samples).slice(-maxSamples));
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

/**
 * Returns own samples with earlier ones before the first and in the gaps. A first one
 * that is unknown is left out, and so is the one at the end of a gap that is full now: it is a mean over it.
 */
function filled(own: readonly Sample[], earlier: readonly Sample[]): Sample[] {
  const out: Sample[] = [];
  const known = own.slice(Number.isNaN(own[0]?.value) ? 1 : 0);
  for (const [i, sample] of known.entries()) {
    const full = addBetween(out, earlier, sample.at);
    const replaced = i > 0 && sample.at - end(out) < closeMs;
    if (!full || !replaced) out.push(sample);
  }
  addBetween(out, earlier, Infinity);
  return out;
}

/** Fills the gap at the end of samples up to a time, if there is one, and reports whether it did. */
function addBetween(samples: Sample[], earlier: readonly Sample[], until: number): boolean {
  const from = samples.length > 0 ? end(samples) : -Infinity;
  if (Math.min(until, end(earlier)) - from <= gapMs) return false;
  const between = earlier.filter(({ at }) => at > from && at < until);
  if (between.length === 0) return false;
  // What was recorded may begin later than the gap.
  const missing = between[0]!.at - from;
  if (gapMs < missing && missing < Infinity) samples.push({ at: between[0]!.at - 1, value: Number.NaN });
  samples.push(...between);
  return true;
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
