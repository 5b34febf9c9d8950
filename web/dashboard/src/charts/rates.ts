/** How many per second, up to a time and from the one of the sample before. */
export interface Sample {
  readonly at: number; // ms as of Date.now
  readonly perSecond: number; // NaN where it cannot be known
}

// Ten minutes of answers that come each second.
const kept = 600;

/**
 * The rates of counters that are read again and again, by name. It lives longer
 * than the page that shows it, so that who comes back finds what was.
 */
export class Rates {
  private readonly counters = new Map<string, { readonly at: number; readonly value: number }>();
  private readonly samples = new Map<string, Sample[]>();

  /** Takes what the counters read at a time. The same reading twice adds nothing. */
  note(counters: ReadonlyMap<string, number>, at: number): void {
    for (const name of this.counters.keys()) if (!counters.has(name)) this.forget(name);
    for (const [name, value] of counters) this.add(name, value, at);
  }

  /** The samples of a counter, the oldest first. */
  of(name: string): readonly Sample[] {
    return this.samples.get(name) ?? [];
  }

  private add(name: string, value: number, at: number): void {
    const last = this.counters.get(name);
    if (last && at <= last.at) return;
    this.counters.set(name, { at, value });
    const samples = this.samples.get(name) ?? [];
    this.samples.set(name, samples);
    // A counter that went back belongs to a gateway that was started anew: nobody
    // knows how much it counted in between.
    const known = last && value >= last.value;
    samples.push({ at, perSecond: known ? (value - last.value) / (at - last.at) * 1000 : NaN });
    if (samples.length > kept) samples.shift();
  }

  private forget(name: string): void {
    this.counters.delete(name);
    this.samples.delete(name);
  }
}

/** The mean over the newest windowMs, so that a number can be read; NaN if nothing is known. */
export function mean(samples: readonly Sample[], windowMs: number): number {
  const end = samples.at(-1)?.at ?? 0;
  let sum = 0;
  let time = 0;
  for (let i = samples.length - 1; i > 0 && samples[i]!.at > end - windowMs; i--) {
    const { at, perSecond } = samples[i]!;
    if (Number.isNaN(perSecond)) continue;
    sum += perSecond * (at - samples[i - 1]!.at);
    time += at - samples[i - 1]!.at;
  }
  return time > 0 ? sum / time : NaN;
}

/** The most in the newest windowMs; NaN if nothing is known. */
export function most(samples: readonly Sample[], windowMs: number): number {
  const end = samples.at(-1)?.at ?? 0;
  let max = NaN;
  for (const { at, perSecond } of samples) {
    if (at > end - windowMs && !(perSecond <= max) && !Number.isNaN(perSecond)) max = perSecond;
  }
  return max;
}
