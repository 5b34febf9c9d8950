import type { Watch } from '@watchtide/protocol';
import { type Trouble, useTroubles } from '../app/troubles';
import { sinceOf } from '../gateway/since';
import type { TableModel } from './table';
import { useStatus } from './useTableModel';

/** Reports to the banner why the table may be out of date. */
export function useFreshness(watch: string, facts: Watch | undefined, model: TableModel): void {
  const state = useStatus(model, ({ view }) => view.state);
  const seen = useStatus(model, ({ view }) => view.since);
  const since = sinceOf(facts, state, seen);
  const reason = useStatus(model, ({ view }) => view.reason);
  const error = useStatus(model, ({ view }) => view.error !== undefined);
  const paused = useStatus(model, ({ paused }) => paused);
  const loading = useStatus(model, ({ revision }) => revision === '') && state === 'stale'; // nothing shown is out of date
  const troubles: Trouble[] = [];
  const ended = state === 'closed' && !error; // closed by this page
  if (state !== 'in_sync' && !ended) troubles.push({ what: watch, state: loading ? 'priming' : state, since, reason });
  if (paused > 0) troubles.push({ what: watch, state: 'paused', since: paused, reason: '' });
  useTroubles(troubles);
}
