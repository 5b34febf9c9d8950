import { useTroubles, type Trouble } from '../app/troubles';
import type { Look } from './model';

/** Reports to the banner why what the table shows may not be what there is. */
export function useFreshness(watch: string, { view: { state, since, reason, error }, paused }: Look): void {
  const troubles: Trouble[] = [];
  const ended = state === 'closed' && !error; // by this page itself
  if (state !== 'in_sync' && !ended) troubles.push({ what: watch, state, since, reason });
  if (paused > 0) troubles.push({ what: watch, state: 'paused', since: paused, reason: '' });
  useTroubles(troubles);
}
