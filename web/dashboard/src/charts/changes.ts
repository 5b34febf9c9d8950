import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse } from '../gateway/contract';
import { Rates } from './rates';

const rates = new Rates();

/** The changes per second of every watch, as far as answers have been seen. */
export function changesOf({ data, at }: Answer<ListWatchesResponse>): Rates {
  if (data) rates.note(new Map(data.watches.map(({ name, changes }) => [name, changes])), at, data.instance);
  return rates;
}
