import type { Figures, Series, StateRun, WatchSeries } from '@watchtide/protocol';

/** The length of an interval: those of 1 s show five minutes, those of 10 s an hour. */
export type Step = Series['step'];

/** The names of the lists of numbers. */
export const figures = [
  'changes',
  'events',
  'bytes',
  'latency_p50_ms',
  'latency_p99_ms',
  'lag',
  'subscribers',
  'delivery_p50_ms',
  'delivery_p99_ms',
  'delivery_reports',
] as const;

export type Figure = (typeof figures)[number];

/** The number of intervals that are shown. */
export const kept: Readonly<Record<Step, number>> = { 1: 300, 10: 360 };

// As many watches as the gateway sends at once.
const limit = 200;

/** The next request: what is newer than what is known. The newest interval may not have ended yet. */
export function pathOf(step: Step, watch: string, known: Series | undefined): string {
  const query = new URLSearchParams({ step: `${step}s`, ...(watch ? { watch } : { limit: String(limit) }) });
  if (known && known.samples > 0) query.set('since', String(known.start + (known.samples - 1) * step));
  return `v1/series?${query}`;
}

/**
 * Adds an answer to what is known. Figures of two replicas are never mixed: those of another one
 * replace all, and the next request asks for the rest.
 */
export function merge(known: Series | undefined, next: Series): Series {
  const { step } = next;
  if (!known || known.instance !== next.instance || known.step !== step) return next;
  const before = (next.start - known.start) / step;
  if (next.samples === 0 || before < 0 || before > known.samples) return next;
  const cut: Cut = { from: Math.max(0, before + next.samples - kept[step]), to: before };
  const byName = new Map(known.watches.map((watch) => [watch.watch, watch]));
  return {
    ...next,
    start: known.start + cut.from * step,
    samples: before + next.samples - cut.from,
    total: next.total && joined(known.total ?? undefined, next.total, cut),
    watches: next.watches.map((watch): WatchSeries => ({ ...watch, ...joined(byName.get(watch.watch), watch, cut) })),
  };
}

/** What stays of the intervals that are known. */
interface Cut {
  readonly from: number;
  readonly to: number;
}

function joined(known: Figures | undefined, next: Figures, { from, to }: Cut): Figures {
  const missing = Math.max(0, to - from);
  const lists = figures.map((figure) => {
    const before = known ? known[figure].slice(from, to) : new Array<null>(missing).fill(null);
    return [figure, [...before, ...next[figure].slice(Math.max(0, from - to))]] as const;
  });
  const states = known ? slice(known.states, from, to) : missing > 0 ? [{ samples: missing }] : [];
  const added = slice(next.states, Math.max(0, from - to), Infinity);
  return { ...(Object.fromEntries(lists) as Record<Figure, (number | null)[]>), states: concat(states, added) };
}

/** Returns the intervals from one on up to another, of runs. */
export function slice(runs: readonly StateRun[], from: number, to: number): StateRun[] {
  const out: StateRun[] = [];
  let at = 0;
  for (const run of runs) {
    const samples = Math.min(at + run.samples, to) - Math.max(at, from);
    if (samples > 0) out.push({ ...run, samples });
    at += run.samples;
  }
  return out;
}

function concat(a: StateRun[], b: readonly StateRun[]): StateRun[] {
  const last = a.at(-1);
  const [first, ...rest] = b;
  if (!last || !first || last.state !== first.state) return [...a, ...b];
  return [...a.slice(0, -1), { ...last, samples: last.samples + first.samples }, ...rest];
}
