import type { Watch } from '@watchtide/protocol';

/**
 * Returns since when a watch is in a state, in ms as of Date.now: what the watch itself says, if it is in that state;
 * otherwise what the page has seen. A page that has just connected has seen little.
 */
export function sinceOf(watch: Pick<Watch, 'state' | 'since'> | undefined, state: string, seen: number): number {
  const own = watch?.state === state ? Date.parse(watch.since ?? '') : Number.NaN;
  return Number.isNaN(own) ? seen : own;
}
