import type { ListWatchesResponse } from '@watchtide/protocol';
import type { Answer } from '../gateway/answer';
import type { Earlier } from './earlier';
import { Rates } from './rates';

const rates = new Rates();

/** Fills the rates with what was recorded before the page was opened; for useEarlier. */
export const fillChanges = (earlier: Earlier): void => rates.fill(earlier);

/** Returns the changes per second of every watch that the user may see all of, from all responses so far. */
export function changesOf({ data, at }: Answer<ListWatchesResponse>): Rates {
  if (data)
    rates.note(new Map(data.watches.filter(({ partial }) => !partial).map(({ name, changes }) => [name, changes])), at, data.instance);
  return rates;
}
