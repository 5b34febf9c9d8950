import type { Watch } from '../gateway/contract';

export type Order = 'name' | 'state';

/** Parses the order in the URL; the default is by name. */
export const parseOrder = (option: string | null): Order => (option === 'state' ? 'state' : 'name');

// What needs attention comes first.
const urgency: ReadonlyArray<Watch['state']> = ['stale', 'resyncing', 'priming', 'in_sync'];

/** Returns the watches with the text in their name, source or state, in order. */
export function arrange(watches: readonly Watch[], order: Order, filter: string): Watch[] {
  const text = filter.toLowerCase();
  const found = watches.filter((watch) => searched(watch).includes(text));
  return found.sort((a, b) => (order === 'state' ? rank(a) - rank(b) : 0) || compare(a.name, b.name));
}

const searched = ({ name, source, state }: Watch) => `${name} ${source} ${stateText(state)} ${state}`.toLowerCase();

/** Returns a state in plain words: `in sync`. */
export const stateText = (state: Watch['state']): string => state.replace('_', ' ');

function rank({ state }: Watch): number {
  return Math.max(0, urgency.indexOf(state)); // an unknown state needs attention
}

const compare = new Intl.Collator('en', { numeric: true }).compare;
