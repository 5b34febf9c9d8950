import type { Earlier } from './earlier';
import { Instances } from './instances';
import { end, type Sample, Samples } from './samples';

// Responses that follow sooner are ignored: over such a short time a single change is
// a high rate.
const minSeconds = 0.5;

/** Computes rates per second from successive readings of counters, for each replica by itself. */
export class Rates {
  private readonly replicas = new Instances(() => new RatesOfOne());

  /**
   * Adds a reading of all counters of an instance. A reading that follows too soon is
   * ignored. Readings of different instances are never compared: behind a load
   * balancer, responses may come from several.
   */
  note(counters: ReadonlyMap<string, number>, at: number, instance: string): void {
    this.replicas.answered(instance).note(counters, at);
  }

  /** Adds rates of a replica from before its first reading. */
  fill(earlier: Earlier): void {
    const one = this.replicas.of(earlier.instance);
    if (one) earlier.fill('changes', one.samples);
  }

  /** Returns the rates of a counter at the replica that answered last, the oldest first. */
  of(name: string): readonly Sample[] {
    return this.replicas.current.samples.of(name);
  }

  /** The replicas that have answered, the last one at the end. */
  get instances(): readonly string[] {
    return this.replicas.names;
  }
}

class RatesOfOne {
  readonly samples = new Samples();
  private last: ReadonlyMap<string, number> = new Map();
  private lastAt = -Infinity;

  note(counters: ReadonlyMap<string, number>, at: number): void {
    const seconds = (at - this.lastAt) / 1000;
    if (seconds >= 0 && seconds < minSeconds) return;
    if (seconds < 0) this.last = new Map(); // the clock was set back: it starts again, as Samples does
    const rates = [...counters].map(([name, count]) => [name, increase(this.last.get(name), count) / seconds] as const);
    this.samples.note(new Map(rates), at);
    this.last = counters;
    this.lastAt = at;
  }
}

// A counter goes back when the gateway is restarted: how much it counted in between
// is unknown.
const increase = (before: number | undefined, now: number) => (before === undefined || now < before ? NaN : now - before);

/** The mean rate over the last windowMs, steady enough to be read; NaN if unknown. */
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
