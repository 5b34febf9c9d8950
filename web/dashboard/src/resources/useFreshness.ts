import { type Trouble, useTroubles } from '../app/troubles';
import type { TableStatus } from './model';

/** Reports to the banner why the table may be out of date. */
export function useFreshness(watch: string, { view: { state, since, reason, error }, paused }: TableStatus): void {
  const troubles: Trouble[] = [];
  const ended = state === 'closed' && !error; // closed by this page
  if (state !== 'in_sync' && !ended) troubles.push({ what: watch, state, since, reason });
  if (paused > 0) troubles.push({ what: watch, state: 'paused', since: paused, reason: '' });
  useTroubles(troubles);
}
