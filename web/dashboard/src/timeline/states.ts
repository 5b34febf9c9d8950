import type { Series, StateRun, Watch } from '@watchtide/protocol';
import { moment } from '../text/moment';

/** Intervals in a row with the same state: index of the first one, and how many they are. */
export interface Stretch {
  readonly state: NonNullable<StateRun['state']> | undefined; // undefined: there are no figures
  readonly from: number;
  readonly samples: number;
}

export const stateTexts: Readonly<Record<NonNullable<StateRun['state']>, string>> = {
  idle: 'idle',
  in_sync: 'in sync',
  priming: 'priming',
  resyncing: 'resyncing',
  stale: 'stale',
};

/** Returns the stretches of runs. */
export function stretches(runs: readonly StateRun[]): Stretch[] {
  let from = 0;
  return runs.map(({ state, samples }) => {
    const stretch = { state, from, samples };
    from += samples;
    return stretch;
  });
}

/** Returns the stretch that an interval is in. */
export const stretchAt = (all: readonly Stretch[], index: number): Stretch | undefined =>
  all.find(({ from, samples }) => index >= from && index < from + samples);

/**
 * Returns since when the state of a stretch is there, in seconds since 1970: of the newest one what the watch itself says.
 * The samples begin later than a state that is older, or than a gap in them. early: it may have begun before.
 */
export function sinceOfStretch(stretch: Stretch, { start, step, samples }: Times, watch?: Pick<Watch, 'state' | 'since'>): Since {
  const from = start + stretch.from * step;
  const own = Date.parse(watch?.since ?? '') / 1000;
  const isNewest = stretch.from + stretch.samples === samples;
  if (isNewest && watch?.state === stretch.state && !Number.isNaN(own)) return { at: own, early: false };
  return { at: from, early: stretch.from === 0 };
}

/** Says it: `since 14:03:07`. */
export function sinceText(stretch: Stretch, times: Times, watch?: Pick<Watch, 'state' | 'since'>): string {
  const { at, early } = sinceOfStretch(stretch, times, watch);
  return `since ${moment(at * 1000)}${early ? ' or before' : ''}`;
}

/** Returns the watches by name, and under the name '' all together: in the worst state, since the first is in it, or in sync since the last is. */
export function together(watches: readonly Watch[]): ReadonlyMap<string, Pick<Watch, 'state' | 'since'>> {
  const worst = (['stale', 'resyncing', 'priming', 'in_sync'] as const).find((state) => watches.some((watch) => watch.state === state));
  const times = watches
    .flatMap(({ state, since }) => (state === worst && since ? [since] : []))
    .sort((a, b) => Date.parse(a) - Date.parse(b));
  const since = times.at(worst === 'in_sync' ? -1 : 0);
  const all = new Map<string, Pick<Watch, 'state' | 'since'>>(watches.map((watch) => [watch.name, watch]));
  return worst && since ? all.set('', { state: worst, since }) : all;
}

/** The place of samples on the clock. */
export type Times = Pick<Series, 'start' | 'step' | 'samples'>;

export interface Since {
  readonly at: number;
  readonly early: boolean;
}

export const stateText = ({ state }: Stretch): string => (state ? stateTexts[state] : 'no figures');

/** Returns how many of the intervals are in no good state. */
export const late = (all: readonly Stretch[]): number =>
  all.reduce((sum, { state, samples }) => (state === 'stale' || state === 'resyncing' || state === 'priming' ? sum + samples : sum), 0);
