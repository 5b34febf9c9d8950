import type { StateRun } from '../gateway/contract';

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

export const stateText = ({ state }: Stretch): string => (state ? stateTexts[state] : 'no figures');

/** Returns how many of the intervals are in no good state. */
export const late = (all: readonly Stretch[]): number =>
  all.reduce((sum, { state, samples }) => (state === 'stale' || state === 'resyncing' || state === 'priming' ? sum + samples : sum), 0);
