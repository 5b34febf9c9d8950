import type { View } from '@watchtide/client';
import { useNow } from '../app/clock';
import { useTroubles, type Trouble } from '../app/troubles';
import type { Look } from './sheet';

// A beginning takes a moment, and is no trouble before.
const patienceMs = 1000;

/** Reports to the banner why what the table shows may not be what there is. */
export function useFreshness(watch: string, { state, since, reason, error }: View, { paused }: Look): void {
  const waits = useNow() - since > patienceMs;
  const troubles: Trouble[] = [];
  if (state === 'stale' || state === 'offline') troubles.push({ what: watch, state, since, reason });
  if ((state === 'connecting' || state === 'priming') && waits) troubles.push({ what: watch, state, since, reason });
  if (state === 'closed' && error) troubles.push({ what: watch, state, since, reason });
  if (paused > 0) troubles.push({ what: watch, state: 'paused', since: paused, reason: '' });
  useTroubles(troubles);
}
