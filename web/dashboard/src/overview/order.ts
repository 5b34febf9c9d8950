import type { Watch } from '@watchtide/protocol';
import type { Sort } from '../app/DataTable';

// What needs attention comes first.
const urgency: ReadonlyArray<Watch['state']> = ['stale', 'resyncing', 'priming', 'in_sync'];

/** Returns the watches with the text in their name, source or state, in order. */
export function arrange(watches: readonly Watch[], { compare }: Sort<Watch>, filter: string): Watch[] {
  const text = filter.toLowerCase();
  const found = watches.filter((watch) => searched(watch).includes(text));
  return found.sort((a, b) => compare(a, b) || compareNames(a, b));
}

const searched = ({ name, source, state }: Watch) => `${name} ${source} ${stateText(state)} ${state}`.toLowerCase();

/** Returns a state in plain words: `in sync`. */
export const stateText = (state: Watch['state']): string => state.replace('_', ' ');

/** Returns the place of the state of a watch in the order of what needs attention; an unknown state does. */
export const rank = ({ state }: Watch): number => Math.max(0, urgency.indexOf(state));

const collator = new Intl.Collator('en', { numeric: true });

export const compareNames = (a: Watch, b: Watch): number => collator.compare(a.name, b.name);
