import type { Watch } from '@watchtide/protocol';

/** Whether the data of some watches is fresh, and since when: since the last came in sync, or since the first is not. */
export interface Verdict {
  readonly late: readonly Watch[];
  /** undefined: no watch says it. */
  readonly since: string | undefined;
}

/** Returns the verdict about watches. */
export function verdictOf(watches: readonly Watch[]): Verdict {
  const late = watches.filter(({ state }) => state !== 'in_sync');
  const times = (late.length > 0 ? late : watches).flatMap(({ since }) => since ?? []).sort((a, b) => Date.parse(a) - Date.parse(b));
  return { late, since: times.at(late.length > 0 ? 0 : -1) };
}

/** Returns the watches in the order in which they need attention: what is not in sync, what is not connected, and the rest. */
export const byNeed = (watches: readonly Watch[]): Watch[] => watches.toSorted((a, b) => need(a) - need(b));

const need = ({ state, upstream }: Watch) => (state !== 'in_sync' ? 0 : upstream.connected ? 2 : 1);
