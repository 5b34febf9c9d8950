import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse } from '../gateway/contract';
import { Rates } from './rates';

const rates = new Rates();

/** Returns the changes per second of every watch that the user may see all of, from all responses so far. */
export function changesOf({ data, at }: Answer<ListWatchesResponse>): Rates {
  if (data)
    rates.note(new Map(data.watches.filter(({ partial }) => !partial).map(({ name, changes }) => [name, changes])), at, data.instance);
  return rates;
}
