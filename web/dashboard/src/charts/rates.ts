import { end, Samples, type Sample } from './samples';

// Two answers so close together, such as those that two pages ask for one after the
// other, are one: by such a time a single count is a lot per second.
const least = 0.5;

/** How many per second counters that are read again and again count: each sample from the one before. */
export class Rates {
  private readonly samples = new Samples();
  private last: ReadonlyMap<string, number> = new Map();
  private lastAt = -Infinity;
  private instance = '';

  /**
   * Takes what all counters of an instance read at a time. One that comes too soon
   * after another adds nothing. Nothing is subtracted from the counters of another
   * instance: behind a load balancer, answers may be those of several.
   */
  note(counters: ReadonlyMap<string, number>, at: number, instance: string): void {
    const seconds = (at - this.lastAt) / 1000;
    if (seconds >= 0 && seconds < least) return;
    // A clock that was set back begins from nothing, as Samples do.
    if (seconds < 0 || instance !== this.instance) this.last = new Map();
    this.instance = instance;
    const rates = [...counters].map(([name, count]) => [name, increase(this.last.get(name), count) / seconds] as const);
    this.samples.note(new Map(rates), at);
    this.last = counters;
    this.lastAt = at;
  }

  /** The rates of a counter, the oldest first. */
  of(name: string): readonly Sample[] {
    return this.samples.of(name);
  }
}

// A counter that went back belongs to a gateway that was started anew: nobody
// knows how much it counted in between.
const increase = (before: number | undefined, now: number) => (before === undefined || now < before ? NaN : now - before);

/** The mean rate in the newest windowMs, so that a number can be read; NaN if nothing is known. */
export function mean(rates: readonly Sample[], windowMs: number): number {
  const from = end(rates) - windowMs;
  let sum = 0;
  let time = 0;
  for (let i = rates.length - 1; i > 0 && rates[i]!.at > from; i--) {
    const { at, value } = rates[i]!;
    if (Number.isNaN(value)) continue;
    const lasted = at - Math.max(from, rates[i - 1]!.at);
    sum += value * lasted;
    time += lasted;
  }
  return time > 0 ? sum / time : NaN;
}
